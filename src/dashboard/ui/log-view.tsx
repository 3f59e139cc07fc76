import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ChevronDown, ChevronUp, Download, Pause, Play, WrapText } from "lucide-react";
import { useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { exact, plural } from "../data/format.ts";
import { Ansi } from "./ansi.tsx";
import { Button, IconButton } from "./button.tsx";
import { Input } from "./field.tsx";

export interface LogLine {
  readonly at: string | null;
  /** The process type; null in a build's log. */
  readonly process: string | null;
  readonly replica: number | null;
  readonly text: string;
}

interface LogViewProps {
  readonly lines: readonly LogLine[];
  readonly label: string;
  readonly fileName: string;
  readonly empty: ReactNode;
  /** More controls, at the left. */
  readonly controls?: ReactNode;
  readonly height: string;
}

const rowHeight = 20;

/** Lines of any number: only those in sight are in the page. It follows the end until the reader scrolls up. */
export function LogView({ lines, label, fileName, empty, controls, height }: LogViewProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const [follows, setFollows] = useState(true);
  const [wraps, setWraps] = useState(false);
  const [seen, setSeen] = useState(lines.length);
  const search = useSearch(lines);
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 30,
  });
  const last = lines.length - 1;
  useEffect(() => {
    if (!follows) return;
    if (last >= 0) rows.scrollToIndex(last, { align: "end" });
    setSeen(last + 1);
  }, [follows, last, rows]);
  useEffect(() => {
    if (search.line !== undefined) rows.scrollToIndex(search.line, { align: "center" });
  }, [search.line, rows]);
  const onScroll = () => {
    const { scrollHeight, scrollTop, clientHeight } = scroller.current as HTMLDivElement;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < rowHeight * 1.5;
    if (isAtEnd && !follows) setFollows(true);
  };
  const pause = () => follows && setFollows(false);
  const unseen = Math.max(0, lines.length - seen);
  return (
    <div className="flex min-h-0 flex-col overflow-hidden rounded-md border border-line" style={{ height }}>
      <div className="flex flex-wrap items-center gap-1.5 border-b border-line bg-panel px-2 py-1.5">
        {controls}
        <div className="ml-auto flex min-w-0 items-center gap-0.5 max-sm:w-full">
          <SearchBox search={search} onUse={() => setFollows(false)} />
          <IconButton
            label={follows ? "Pause" : "Follow the end"}
            aria-pressed={follows}
            onClick={() => setFollows(!follows)}
          >
            {follows ? <Pause size={15} /> : <Play size={15} />}
          </IconButton>
          <IconButton
            label="Wrap long lines"
            aria-pressed={wraps}
            className={wraps ? "bg-selected text-text" : ""}
            onClick={() => setWraps(!wraps)}
          >
            <WrapText size={15} />
          </IconButton>
          <IconButton label="Download" onClick={() => download(fileName, lines)}>
            <Download size={15} />
          </IconButton>
        </div>
      </div>
      <div className="relative min-h-0 flex-1 bg-bg">
        <div
          ref={scroller}
          role="log"
          aria-label={label}
          aria-live="off"
          tabIndex={0}
          onScroll={onScroll}
          onWheel={(event) => event.deltaY < 0 && pause()}
          onTouchMove={pause}
          onKeyDown={(event) => ["ArrowUp", "PageUp", "Home"].includes(event.key) && pause()}
          className="absolute inset-0 overflow-auto py-2 font-mono text-[12.5px] leading-5 focus-visible:outline-offset-[-2px]"
        >
          {lines.length === 0 && <div className="px-4 py-6 font-sans text-sm text-muted">{empty}</div>}
          <div
            className="relative min-w-full"
            style={{ height: rows.getTotalSize(), width: wraps ? "100%" : "max-content" }}
          >
            {rows.getVirtualItems().map(({ index, start, key }) => (
              <div
                key={key}
                ref={rows.measureElement}
                data-index={index}
                className={`absolute top-0 left-0 flex w-full gap-3 px-4 hover:bg-hover ${search.line === index ? "bg-warn/15" : ""}`}
                style={{ transform: `translateY(${start}px)` }}
              >
                <Line line={lines[index] as LogLine} wraps={wraps} query={search.text} />
              </div>
            ))}
          </div>
        </div>
        {!follows && unseen > 0 && (
          <div className="absolute inset-x-0 bottom-3 flex justify-center">
            <Button
              look="primary"
              className="shadow-float"
              icon={<ArrowDown size={14} />}
              onClick={() => setFollows(true)}
            >
              {plural(unseen, "new line")}
            </Button>
          </div>
        )}
      </div>
    </div>
  );
}

/** A text as lines without times. */
export function linesOf(text: string): LogLine[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines.map((line) => ({ at: null, process: null, replica: null, text: line }));
}

const replicaColours = ["text-busy", "text-ok", "text-warn", "text-accent", "text-bad"];
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

function Line({ line, wraps, query }: { readonly line: LogLine; readonly wraps: boolean; readonly query: string }) {
  const { at, process, replica, text } = line;
  return (
    <>
      {at !== null && (
        <time dateTime={at} title={exact(at)} className="shrink-0 text-muted select-none">
          {clock.format(new Date(at))}
        </time>
      )}
      {replica !== null && (
        <span
          title={`${process ?? "web"}, replica ${replica}`}
          className={`w-[9ch] shrink-0 truncate select-none ${replicaColours[replica % replicaColours.length]}`}
        >
          {process ?? "web"}.{replica}
        </span>
      )}
      <span className={wraps ? "min-w-0 break-all whitespace-pre-wrap" : "whitespace-pre"}>
        <Ansi text={text === "" ? " " : text} query={query} />
      </span>
    </>
  );
}

/** Which lines hold the text, and which of them is the present one. */
function useSearch(lines: readonly LogLine[]) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const hits = useMemo(() => {
    const wanted = text.toLowerCase();
    if (wanted === "") return [];
    return lines.flatMap((line, index) => (line.text.toLowerCase().includes(wanted) ? [index] : []));
  }, [lines, text]);
  const present = hits.length === 0 ? 0 : ((at % hits.length) + hits.length) % hits.length;
  const set = (next: string) => {
    setText(next);
    setAt(-1);
  };
  return { text, set, hits, present, line: hits[present], move: (by: number) => setAt(present + by) };
}

function SearchBox({ search, onUse }: { readonly search: ReturnType<typeof useSearch>; readonly onUse: () => void }) {
  const { text, hits, present } = search;
  return (
    <>
      <Input
        type="search"
        aria-label="Search the log"
        placeholder="Search"
        data-search
        className="sm:max-w-44"
        value={text}
        onChange={(event) => {
          onUse();
          search.set(event.target.value);
        }}
        onKeyDown={(event) => event.key === "Enter" && search.move(event.shiftKey ? -1 : 1)}
      />
      {text !== "" && (
        <span role="status" className="px-1.5 text-xs whitespace-nowrap text-muted">
          {hits.length === 0 ? "none" : `${present + 1} / ${hits.length}`}
        </span>
      )}
      {hits.length > 1 && (
        <>
          <IconButton label="Previous hit" onClick={() => search.move(-1)}>
            <ChevronUp size={15} />
          </IconButton>
          <IconButton label="Next hit" onClick={() => search.move(1)}>
            <ChevronDown size={15} />
          </IconButton>
        </>
      )}
    </>
  );
}

function download(fileName: string, lines: readonly LogLine[]): void {
  const text = lines.map(({ at, process, replica, text: line }) =>
    [at, replica === null ? null : `${process ?? "web"}.${replica}`, line].filter((part) => part !== null).join(" "),
  );
  const url = URL.createObjectURL(new Blob([`${text.join("\n")}\n`], { type: "text/plain" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = fileName;
  link.click();
  URL.revokeObjectURL(url);
}
