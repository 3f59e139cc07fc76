import { ArrowDown, ChevronDown, ChevronUp, Download, Pause, Play, WrapText } from "lucide-react";
import { useEffect, useMemo, useState, type ReactNode } from "react";
import { plural } from "../data/format.ts";
import type { LineTime } from "../data/use-output.ts";
import { saveFile } from "../data/save-file.ts";
import { Button, IconButton } from "./button.tsx";
import { Input } from "./field.tsx";
import { LogLines } from "./log-lines.tsx";
import type { LogLine } from "./log-row.tsx";

interface LogViewProps {
  /** Identifies the log if the view switches between logs; another one starts at its end. */
  readonly of?: string;
  readonly lines: readonly LogLine[];
  /** The position of the first line, see `useLog`. */
  readonly first?: number;
  readonly label: string;
  readonly fileName: string;
  readonly empty: ReactNode;
  /** More controls, at the left. */
  readonly controls?: ReactNode;
  /** Between the controls and the lines. */
  readonly above?: ReactNode;
  readonly height: string;
  /** The control that loads the lines before the first one. */
  readonly older?: ReactNode;
  /** The index of the line at which the reader begins, once it is known, instead of at the end. */
  readonly startsAt?: number | undefined;
  /** The initial search text, and a listener for changes of it. */
  readonly searched?: string;
  readonly onSearch?: (text: string) => void;
  /** Shows only the lines with this field, written as `name=value`. */
  readonly onField?: (field: string) => void;
}

// On screens this narrow most lines are too wide, so they wrap by default.
const phone = "(width < 640px)";

/** A log with its controls. It follows the end until the reader scrolls up. */
export function LogView({
  of = "",
  lines,
  first = 0,
  fileName,
  controls,
  above,
  height,
  older,
  startsAt,
  ...given
}: LogViewProps) {
  const { searched = "", onSearch, ...rest } = given;
  const [follows, setFollows] = useState(searched === "");
  const [wraps, setWraps] = useState(() => matchMedia(phone).matches);
  const [seen, setSeen] = useState(lines.length);
  const search = useSearch(lines, searched);
  const [before, setBefore] = useState(of);
  if (before !== of) {
    setBefore(of);
    setFollows(search.text === "");
    setSeen(0);
  }
  useEffect(() => {
    if (startsAt !== undefined && search.text === "") setFollows(false);
  }, [startsAt]);
  const end = first + lines.length;
  useEffect(() => {
    if (follows || seen === 0) setSeen(end);
  }, [follows, end, seen]);
  // The initial lines don't count as new.
  const unseen = seen === 0 ? 0 : Math.max(0, end - seen);
  return (
    // No `overflow: hidden` at the round corners: the browser would mask the whole log for every frame of scrolling.
    <div className="flex min-h-0 flex-col rounded-md border border-line bg-bg" style={{ height }}>
      <div className="flex flex-wrap items-center gap-1.5 rounded-t-[5px] border-b border-line bg-panel px-2 py-1.5">
        {controls}
        <div className="ml-auto flex min-w-0 items-center gap-0.5 max-sm:w-full">
          <SearchBox
            search={search}
            onUse={(text) => {
              setFollows(false);
              onSearch?.(text);
            }}
          />
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
      {above}
      <div className="relative min-h-0 flex-1">
        <LogLines
          {...rest}
          key={of}
          lines={lines}
          first={first}
          wraps={wraps}
          follows={follows}
          onFollows={setFollows}
          query={search.text}
          hit={search.text === "" ? startsAt : search.line}
          beginning={older}
        />
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

/** Splits a text into lines, with their times where they are known. */
export function linesOf(text: string, times: readonly LineTime[] = []): LogLine[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  let next = 0;
  return lines.map((line, index) => {
    while (next < times.length && (times[next]?.line ?? 0) <= index) next += 1;
    return { at: times[next - 1]?.at ?? null, process: null, replica: null, text: line };
  });
}

/** Finds the lines that contain the text, and keeps which of them is the current hit. */
function useSearch(lines: readonly LogLine[], searched: string) {
  const [text, setText] = useState(searched);
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

interface SearchBoxProps {
  readonly search: ReturnType<typeof useSearch>;
  readonly onUse: (text: string) => void;
}

function SearchBox({ search, onUse }: SearchBoxProps) {
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
          onUse(event.target.value);
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
  saveFile(fileName, new Blob([`${text.join("\n")}\n`], { type: "text/plain" }));
}
