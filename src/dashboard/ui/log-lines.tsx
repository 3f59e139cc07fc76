import { useVirtualizer } from "@tanstack/react-virtual";
import {
  memo,
  useCallback,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
  type MouseEvent,
  type ReactNode,
} from "react";
import type { LogLevel } from "../../contract/log-level.ts";
import { exact } from "../data/format.ts";
import { Ansi } from "./ansi.tsx";

export interface LogLine {
  readonly at: string | null;
  /** The process type; null in a build's log. */
  readonly process: string | null;
  readonly replica: number | null;
  readonly level?: LogLevel | null;
  readonly text: string;
}

interface LogLinesProps {
  readonly lines: readonly LogLine[];
  /** The position of the first line, see `useLog`. */
  readonly first: number;
  readonly label: string;
  readonly empty: ReactNode;
  readonly wraps: boolean;
  readonly follows: boolean;
  readonly onFollows: (follows: boolean) => void;
  /** The text to mark, and the index of the line that is the current hit. */
  readonly query: string;
  readonly hit: number | undefined;
  /** Shown when the reader is at the beginning of the log. */
  readonly beginning: ReactNode;
}

const rowHeight = 20;
// As many rows as one frame has time to create.
const blockRows = 10;
const overscanBlocks = 3;

/** Shows any number of lines, with only the visible ones in the DOM. They enter and leave it in blocks, so that each step is one change. */
export function LogLines({ lines, first, wraps, follows, onFollows, query, hit, ...rest }: LogLinesProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const [isAtBeginning, setAtBeginning] = useState(false);
  const topBefore = useRef(0);
  // Block boundaries depend on a line's position in the log, so that visible blocks stay the same when lines above them are added or
  // dropped. The first block may be incomplete.
  const firstBlock = Math.floor(first / blockRows);
  const blockOf = (index: number) => Math.floor((first + index) / blockRows) - firstBlock;
  const linesOf = (block: number) => {
    const from = (firstBlock + block) * blockRows - first;
    return [Math.max(0, from), Math.min(lines.length, from + blockRows)] as const;
  };
  // A new key function makes the virtualizer place all blocks again, so it changes only with the lines, not on every frame of scrolling.
  const getItemKey = useCallback((block: number) => firstBlock + block, [firstBlock, first, lines.length]);
  const rows = useVirtualizer({
    count: lines.length === 0 ? 0 : blockOf(lines.length - 1) + 1,
    getScrollElement: () => scroller.current,
    estimateSize: (block) => rowHeight * (linesOf(block)[1] - linesOf(block)[0]),
    getItemKey,
    overscan: overscanBlocks,
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
    if (follows && last >= 0) rows.scrollToIndex(blockOf(last), { align: "end" });
    look();
  }, [follows, last, first, wraps, rows]);
  useEffect(() => {
    if (hit === undefined) return;
    rows.scrollToIndex(blockOf(hit), { align: "center" });
    look();
  }, [hit, rows]);
  // Following resumes only when the reader scrolls down to the end, not while leaving it slowly or when a scroll of the program's own,
  // from before the pause, ends.
  const movesDown = useRef(false);
  useEffect(() => void (movesDown.current = false), [follows]);
  const onScroll = () => {
    const { isDown, isAtEnd } = look();
    if (!follows && movesDown.current && isDown && isAtEnd) onFollows(true);
  };
  const pause = () => follows && onFollows(false);
  const move = (isUp: boolean) => {
    movesDown.current = !isUp;
    if (isUp) pause();
  };
  return (
    <>
      <div
        ref={scroller}
        role="log"
        aria-label={rest.label}
        aria-live="off"
        tabIndex={0}
        onScroll={onScroll}
        onWheel={(event) => move(event.deltaY < 0)}
        onTouchMove={() => {
          pause();
          movesDown.current = true;
        }}
        // The bar at the side is dragged.
        onPointerDown={() => (movesDown.current = true)}
        onMouseOver={nameTime}
        onKeyDown={(event) => move(["ArrowUp", "PageUp", "Home"].includes(event.key))}
        className="absolute inset-x-0 bottom-[3px] h-[calc(round(down,100%-11px,20px)+8px)] overflow-auto bg-bg py-2 font-mono text-[12.5px] leading-5 focus-visible:outline-offset-[-2px]"
      >
        {lines.length === 0 && <div className="px-4 py-6 font-sans text-sm text-muted">{rest.empty}</div>}
        <div className="relative min-w-full" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map(({ index, start, key }) => {
            const [from, to] = linesOf(index);
            return (
              <Block
                key={key}
                lines={lines.slice(from, to)}
                index={index}
                top={start}
                measure={wraps ? rows.measureElement : undefined}
                query={query}
                hit={hit !== undefined && hit >= from && hit < to ? hit - from : undefined}
              />
            );
          })}
        </div>
      </div>
      {isAtBeginning && <div className="absolute inset-x-0 top-2 flex justify-center">{rest.beginning}</div>}
    </>
  );
}

/** Keeps the visible lines in place while older ones are added or dropped above them. */
function useKeepPlace(scroller: { readonly current: HTMLDivElement | null }, first: number, follows: boolean): void {
  const before = useRef(first);
  useLayoutEffect(() => {
    const moved = before.current - first;
    before.current = first;
    if (moved !== 0 && !follows && scroller.current !== null) scroller.current.scrollTop += moved * rowHeight;
  }, [first, follows, scroller]);
}

const nameLength = 9;
// Wrapped text starts below the first character of the text: 8 for the time, 9 for the name, a gap after each. On a phone, time and name
// stand above it, so that the text has the whole width.
const hanging = "sm:pl-[calc(17ch+2.5rem)] sm:indent-[calc(-17ch-1.5rem)]";
const hangingWithoutName = "sm:pl-[calc(8ch+1.75rem)] sm:indent-[calc(-8ch-0.75rem)]";

/** Returns a name of fixed length, so that the texts of all lines align. */
function nameOf(process: string, replica: number): string {
  const end = `.${replica}`;
  const begin =
    process.length + end.length > nameLength ? `${process.slice(0, nameLength - end.length - 1)}…` : process;
  return `${begin}${end}`.padEnd(nameLength);
}

/** Sets the exact time on hover: for every line in advance, it would cost more than the rest of the line. */
function nameTime({ target }: MouseEvent): void {
  if (target instanceof HTMLTimeElement && target.title === "") target.title = exact(target.dateTime);
}

interface BlockProps {
  readonly lines: readonly LogLine[];
  readonly index: number;
  readonly top: number;
  /** Undefined if lines do not wrap, because then all have the same height. */
  readonly measure: ((element: Element | null) => void) | undefined;
  readonly query: string;
  /** The index within `lines` of the current hit. */
  readonly hit: number | undefined;
}

// Placed by `top`, not by a transform: with transforms the browser composites and paints all blocks again for every frame of scrolling.
const Block = memo(function Block({ lines, index, top, measure, query, hit }: BlockProps) {
  const wraps = measure !== undefined;
  return (
    <div
      ref={measure}
      data-index={index}
      className={`absolute left-0 min-w-full ${wraps ? "w-full" : ""}`}
      style={{ top }}
    >
      {lines.map((line, at) => (
        <Row key={at} line={line} wraps={wraps} query={query} isHit={hit === at} />
      ))}
    </div>
  );
}, isSameBlock);

/** Lines never change, so comparing the first and the last one of a block is enough. */
function isSameBlock({ lines, ...before }: BlockProps, { lines: now, ...after }: BlockProps): boolean {
  if (lines.length !== now.length || lines[0] !== now[0] || lines.at(-1) !== now.at(-1)) return false;
  return (Object.keys(after) as (keyof typeof after)[]).every((name) => before[name] === after[name]);
}

interface RowProps {
  readonly line: LogLine;
  readonly wraps: boolean;
  readonly query: string;
  readonly isHit: boolean;
}

// The text says it, too: the bar finds it in a page full of lines.
const levelLooks = {
  error: "shadow-[inset_3px_0_var(--bad)]",
  warn: "shadow-[inset_3px_0_var(--warn)]",
  info: "",
  debug: "text-muted",
};
const replicaColours = ["text-busy", "text-ok", "text-warn", "text-accent", "text-bad"];
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

function Row({ line, wraps, query, isHit }: RowProps) {
  const { at, process, replica, level, text } = line;
  return (
    <div
      ref={isHit ? showHit : undefined}
      aria-current={isHit || undefined}
      className={`px-4 ${wraps ? `wrap-anywhere whitespace-pre-wrap ${at === null ? "" : replica === null ? hangingWithoutName : hanging}` : "h-5 whitespace-pre"} ${level ? levelLooks[level] : ""} ${isHit ? "bg-warn/15" : ""}`}
    >
      {at !== null && (
        <time dateTime={at} className="mr-3 text-muted select-none">
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
      {wraps && at !== null && <br className="sm:hidden" />}
      <Ansi text={text === "" ? " " : text} query={query} />
    </div>
  );
}

/** Scrolls to the row itself, because a block may be higher than the window where long lines wrap. */
function showHit(row: HTMLElement | null): void {
  row?.scrollIntoView({ block: "nearest", inline: "nearest" });
}
