import { useVirtualizer, type Range } from "@tanstack/react-virtual";
import { memo, useEffect, useLayoutEffect, useRef, useState, type ReactNode } from "react";
import { exact } from "../data/format.ts";
import { Ansi } from "./ansi.tsx";

export interface LogLine {
  readonly at: string | null;
  /** The process type; null in a build's log. */
  readonly process: string | null;
  readonly replica: number | null;
  readonly text: string;
}

interface LogLinesProps {
  readonly lines: readonly LogLine[];
  /** The place of the first line, see `useLog`. */
  readonly first: number;
  readonly label: string;
  readonly empty: ReactNode;
  readonly wraps: boolean;
  readonly follows: boolean;
  readonly onFollows: (follows: boolean) => void;
  /** A text to mark, and the line that is the present hit. */
  readonly query: string;
  readonly hit: number | undefined;
  /** Stands at the beginning of the log. */
  readonly beginning: ReactNode;
}

const rowHeight = 20;
const blockRows = 40;
const overscanRows = 20;

/** Rows come and go a block at a time: each change of the page's content lets the browser paint whole tiles again. */
function wholeBlocks({ startIndex, endIndex, count }: Range): number[] {
  const from = Math.max(0, Math.floor((startIndex - overscanRows) / blockRows) * blockRows);
  const to = Math.min(count, Math.ceil((endIndex + overscanRows) / blockRows) * blockRows);
  return Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index);
}

/** Lines of any number: only those in sight are in the page. */
export function LogLines({ lines, first, wraps, follows, onFollows, query, hit, ...rest }: LogLinesProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const [isAtBeginning, setAtBeginning] = useState(false);
  const topBefore = useRef(0);
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    getItemKey: (index) => first + index,
    rangeExtractor: wholeBlocks,
  });
  const last = lines.length - 1;
  useLayoutEffect(() => rows.measure(), [wraps, rows]);
  useKeepPlace(scroller, first, follows);
  const look = () => {
    const { scrollHeight, scrollTop, clientHeight } = scroller.current as HTMLDivElement;
    const isDown = scrollTop > topBefore.current;
    topBefore.current = scrollTop;
    setAtBeginning(scrollTop < rowHeight && scrollHeight > clientHeight);
    return { isDown, isAtEnd: scrollHeight - scrollTop - clientHeight < rowHeight * 1.5 };
  };
  useEffect(() => {
    if (follows && last >= 0) rows.scrollToIndex(last, { align: "end" });
    look();
  }, [follows, last, first, wraps, rows]);
  useEffect(() => {
    if (hit === undefined) return;
    rows.scrollToIndex(hit, { align: "center" });
    look();
  }, [hit, rows]);
  // Only a reader who scrolls down to the end follows it again: not one who slowly leaves it, and not the end of a scroll before a pause.
  const onScroll = () => {
    const { isDown, isAtEnd } = look();
    if (!follows && isDown && isAtEnd) onFollows(true);
  };
  const pause = () => follows && onFollows(false);
  return (
    <>
      <div
        ref={scroller}
        role="log"
        aria-label={rest.label}
        aria-live="off"
        tabIndex={0}
        onScroll={onScroll}
        onWheel={(event) => event.deltaY < 0 && pause()}
        onTouchMove={pause}
        onKeyDown={(event) => ["ArrowUp", "PageUp", "Home"].includes(event.key) && pause()}
        className="absolute inset-0 overflow-auto bg-bg py-2 font-mono text-[12.5px] leading-5 focus-visible:outline-offset-[-2px]"
      >
        {lines.length === 0 && <div className="px-4 py-6 font-sans text-sm text-muted">{rest.empty}</div>}
        <div className="relative min-w-full" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map(({ index, start, key }) => (
            <Row
              key={key}
              line={lines[index] as LogLine}
              index={index}
              top={start}
              measure={wraps ? rows.measureElement : undefined}
              query={query}
              isHit={hit === index}
            />
          ))}
        </div>
      </div>
      {isAtBeginning && <div className="absolute inset-x-0 top-2 flex justify-center">{rest.beginning}</div>}
    </>
  );
}

/** Keeps the lines in sight where they are while older ones come or go above them. */
function useKeepPlace(scroller: { readonly current: HTMLDivElement | null }, first: number, follows: boolean): void {
  const before = useRef(first);
  useLayoutEffect(() => {
    const moved = before.current - first;
    before.current = first;
    if (moved !== 0 && !follows && scroller.current !== null) scroller.current.scrollTop += moved * rowHeight;
  }, [first, follows, scroller]);
}

const nameLength = 9;
// Below the first character of the text: 8 of the time, 9 of the name, two gaps.
const hanging = "pl-[calc(17ch+2.5rem)] indent-[calc(-17ch-1.5rem)]";

/** As long as any other, so that the texts begin below each other. */
function nameOf(process: string, replica: number): string {
  const end = `.${replica}`;
  const begin =
    process.length + end.length > nameLength ? `${process.slice(0, nameLength - end.length - 1)}…` : process;
  return `${begin}${end}`.padEnd(nameLength);
}

interface RowProps {
  readonly line: LogLine;
  readonly index: number;
  readonly top: number;
  /** Undefined where lines do not wrap: then all have the same height. */
  readonly measure: ((element: Element | null) => void) | undefined;
  readonly query: string;
  readonly isHit: boolean;
}

const replicaColours = ["text-busy", "text-ok", "text-warn", "text-accent", "text-bad"];
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

// Placed by `top`, not by a transform: with one each, the browser composes and paints all of them again for every frame of scrolling.
const Row = memo(function Row({ line, index, top, measure, query, isHit }: RowProps) {
  const { at, process, replica, text } = line;
  const wraps = measure !== undefined;
  return (
    <div
      ref={measure}
      data-index={index}
      className={`absolute left-0 min-w-full px-4 ${wraps ? `w-full break-all whitespace-pre-wrap ${at === null ? "" : hanging}` : "h-5 whitespace-pre"} ${isHit ? "bg-warn/15" : ""}`}
      style={{ top }}
    >
      {at !== null && (
        <time dateTime={at} title={exact(at)} className="mr-3 text-muted select-none">
          {clock.format(new Date(at))}
        </time>
      )}
      {replica !== null && (
        <span
          title={`${process ?? "web"}, replica ${replica}`}
          className={`mr-3 select-none ${replicaColours[replica % replicaColours.length]}`}
        >
          {nameOf(process ?? "web", replica)}
        </span>
      )}
      <Ansi text={text === "" ? " " : text} query={query} />
    </div>
  );
});
