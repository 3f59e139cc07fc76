import { useVirtualizer, type Virtualizer } from "@tanstack/react-virtual";
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
import { exact } from "../data/format.ts";
import { LogRow, type LogLine } from "./log-row.tsx";

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
  /** Shows only the lines with this field, written as `name=value`. */
  readonly onField?: (field: string) => void;
}

const rowHeight = 20;
// As many rows as one frame has time to create.
const blockRows = 10;
const overscanBlocks = 3;

/** Shows any number of lines, with only the visible ones in the DOM. They enter and leave it in blocks, so that each step is one change. */
export function LogLines({ lines, first, wraps, follows, onFollows, query, hit, onField, ...rest }: LogLinesProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const [isAtBeginning, setAtBeginning] = useState(false);
  const topBefore = useRef(0);
  // By position in the log: whether the fields of a JSON line are shown. A line once opened keeps its block measured.
  const [folds, setFolds] = useState<ReadonlyMap<number, boolean>>(new Map());
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
  // A function that stays the same, so that blocks do too.
  const shownField = useRef(onField);
  shownField.current = onField;
  const showField = useCallback((field: string) => shownField.current?.(field), []);
  // A line that opens grows downwards: only blocks above the window move what is in it.
  if (folds.size > 0)
    rows.shouldAdjustScrollPositionOnItemSizeChange = ({ end }, _, { scrollOffset }) => end <= (scrollOffset ?? 0);
  const last = lines.length - 1;
  useLayoutEffect(() => {
    rows.measure();
    for (const block of scroller.current?.querySelectorAll("[data-measured]") ?? []) rows.measureElement(block);
  }, [wraps, rows]);
  useKeepPlace({ scroller, rows, first, firstBlock, follows });
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
  const onClick = ({ target, detail }: MouseEvent) => {
    const position = positionOf(target as Element);
    // Marking text is no click, neither is the second press of a double one.
    if (position === undefined || detail > 1 || getSelection()?.isCollapsed === false) return;
    pause();
    setFolds(new Map(folds).set(position, folds.get(position) !== true));
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
        onClick={onClick}
        onKeyDown={(event) => move(["ArrowUp", "PageUp", "Home"].includes(event.key))}
        className="absolute inset-x-0 bottom-[3px] h-[calc(round(down,100%-11px,20px)+8px)] @container overflow-auto bg-bg py-2 font-mono text-[12.5px] leading-5 focus-visible:outline-offset-[-2px]"
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
                position={first + from}
                folds={foldsOf(folds, first + from, to - from)}
                wraps={wraps}
                measure={rows.measureElement}
                query={query}
                onField={onField && showField}
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

/** Returns the position of a clicked line that can be opened; undefined for a click on anything else, such as the fields below a line. */
function positionOf(target: Element): number | undefined {
  const row = target.closest("[data-index] > div:has(> [data-fold])");
  const block = row?.parentElement;
  if (!(row instanceof HTMLElement) || !(block instanceof HTMLElement)) return undefined;
  const rowsBefore = Array.from(block.children).filter((each) => each.matches("div:not([data-fields])"));
  return Number(block.dataset["position"]) + rowsBefore.indexOf(row);
}

/** Returns the folds of a block as a text, which is equal for equal folds; undefined if no line of it has been opened. */
function foldsOf(folds: ReadonlyMap<number, boolean>, position: number, length: number): string | undefined {
  if (folds.size === 0) return undefined;
  const found = Array.from({ length }, (_, at) => folds.get(position + at));
  if (found.every((each) => each === undefined)) return undefined;
  return found.map((isOpen) => (isOpen === true ? "+" : "-")).join("");
}

interface Place {
  readonly scroller: { readonly current: HTMLDivElement | null };
  readonly rows: Virtualizer<HTMLDivElement, Element>;
  readonly first: number;
  readonly firstBlock: number;
  readonly follows: boolean;
}

/** Keeps the visible lines in place while older ones are added or dropped above them. */
function useKeepPlace({ scroller, rows, first, firstBlock, follows }: Place): void {
  const before = useRef({ first, key: -1, end: 0 });
  useLayoutEffect(() => {
    const { current } = before;
    const now = rows.measurementsCache[current.key - firstBlock];
    // The end of a block stays the same when lines are added to its beginning.
    const moved = now === undefined ? (current.first - first) * rowHeight : now.end - current.end;
    if (current.first !== first && !follows && scroller.current !== null) scroller.current.scrollTop += moved;
    const shown = rows.getVirtualItems();
    const anchor = shown[Math.floor(shown.length / 2)];
    before.current = { first, key: anchor === undefined ? -1 : Number(anchor.key), end: anchor?.end ?? 0 };
  });
}

/** Sets the exact time on hover: for every line in advance, it would cost more than the rest of the line. */
function nameTime({ target }: MouseEvent): void {
  if (target instanceof HTMLTimeElement && target.title === "") target.title = exact(target.dateTime);
}

interface BlockProps {
  readonly lines: readonly LogLine[];
  readonly index: number;
  readonly top: number;
  /** The first line's position in the log. */
  readonly position: number;
  /** `+` for each line that is open, see `foldsOf`. */
  readonly folds: string | undefined;
  readonly wraps: boolean;
  readonly measure: (element: Element | null) => void;
  readonly query: string;
  /** The index within `lines` of the current hit. */
  readonly hit: number | undefined;
  readonly onField: ((field: string) => void) | undefined;
}

// Placed by `top`, not by a transform: with transforms the browser composites and paints all blocks again for every frame of scrolling.
const Block = memo(function Block({
  lines,
  index,
  top,
  position,
  folds,
  wraps,
  measure,
  query,
  hit,
  onField,
}: BlockProps) {
  // Otherwise all lines have the same height.
  const isMeasured = wraps || folds !== undefined;
  return (
    <div
      ref={isMeasured ? measure : undefined}
      data-index={index}
      data-position={position}
      {...(isMeasured ? { "data-measured": true } : {})}
      className={`absolute left-0 min-w-full ${wraps ? "w-full" : ""}`}
      style={{ top }}
    >
      {lines.map((line, at) => (
        <LogRow
          key={at}
          line={line}
          above={lines[at - 1]}
          wraps={wraps}
          query={query}
          isHit={hit === at}
          isOpen={folds?.[at] === "+"}
          onField={onField}
        />
      ))}
    </div>
  );
}, isSameBlock);

/** Lines never change, so comparing the first and the last one of a block is enough. */
function isSameBlock({ lines, ...before }: BlockProps, { lines: now, ...after }: BlockProps): boolean {
  if (lines.length !== now.length || lines[0] !== now[0] || lines.at(-1) !== now.at(-1)) return false;
  return (Object.keys(after) as (keyof typeof after)[]).every((name) => before[name] === after[name]);
}
