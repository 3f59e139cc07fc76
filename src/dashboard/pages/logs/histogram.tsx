import { useMemo, useRef, useState, type KeyboardEvent, type PointerEvent } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { clockTime, plural } from "../../data/format.ts";
import { Button } from "../../ui/button.tsx";

type Counts = Answer<"logs.counts">;

interface HistogramProps {
  readonly slug: string;
  readonly filters: {
    readonly process: string | undefined;
    readonly replica: number | undefined;
    readonly level: "error" | "warn" | "info" | "debug" | undefined;
    readonly field: readonly string[] | undefined;
  };
  readonly range: { readonly since: string | undefined; readonly until: string | undefined };
  /** The time of the first line that is shown; undefined without lines. */
  readonly oldest: string | undefined;
  /** Shows a range; an empty one the newest lines. */
  readonly onRange: (range: { readonly since?: string; readonly until?: string }) => void;
}

const parts = 90;
const pollMs = 15_000;
const usualRangeMs = 3_600_000;

/** How many lines there are over time, errors and warnings in their colours. A click or a drag shows a part alone. */
export function Histogram({ slug, filters, range, oldest, onRange }: HistogramProps) {
  const since = range.since ?? beginningOf(oldest);
  const query = { ...filters, since, until: range.until, parts };
  const live = range.until === undefined ? { pollMs } : {};
  const { data, isError } = useCall("logs.counts", { params: { slug }, query }, { keep: true, ...live });
  const [chosen, setChosen] = useState<readonly [number, number]>();
  const shown = data === undefined ? undefined : ((chosen && sumOf(data, chosen)) ?? data);
  const choose = ([from, to]: readonly [number, number]) => {
    if (data === undefined) return;
    const [since, until] = timesOf(data, [from, to]);
    setChosen(undefined);
    onRange({ since, until });
  };
  return (
    <div className="flex h-24 shrink-0 flex-col gap-1 border-b border-line px-4 py-2 text-xs text-muted max-sm:h-20">
      <div className="flex h-5 items-center justify-between gap-3 whitespace-nowrap">
        <span className="truncate">
          {shown === undefined ? isError ? "The lines could not be counted." : "" : <Words counts={shown} />}
        </span>
        {range.until !== undefined && (
          <Button look="quiet" className="h-5! min-h-5! px-1! text-xs! text-accent!" onClick={() => onRange({})}>
            Back to live
          </Button>
        )}
      </div>
      {data === undefined ? <div className="flex-1" /> : <Bars {...{ counts: data, chosen, setChosen, choose }} />}
      <div className="flex h-4 justify-between text-faint">
        {shown !== undefined && (
          <>
            <time dateTime={shown.from}>{clockTime(shown.from)}</time>
            <time dateTime={shown.until}>{clockTime(shown.until)}</time>
          </>
        )}
      </div>
    </div>
  );
}

/** The beginning of what the newest lines show, an hour at least. It changes once a minute at most, because each change asks again. */
function beginningOf(oldest: string | undefined): string {
  const ms = Math.floor(Date.parse(oldest ?? "") / 60_000) * 60_000;
  return ms < Date.now() - usualRangeMs ? new Date(ms).toISOString() : "1h";
}

type Sum = Pick<Counts, "from" | "until" | "lines" | "errors" | "warnings">;

function Words({ counts: { lines, errors, warnings } }: { readonly counts: Sum }) {
  return (
    <>
      {plural(lines, "line")}
      {errors > 0 && <span className="text-bad"> · {plural(errors, "error")}</span>}
      {warnings > 0 && <span className="text-warn"> · {plural(warnings, "warning")}</span>}
    </>
  );
}

function timesOf({ parts: all, until }: Counts, [one, other]: readonly [number, number]): readonly [string, string] {
  const [from, to] = [Math.min(one, other), Math.max(one, other)];
  return [all[from]?.at ?? until, all[to + 1]?.at ?? until];
}

function sumOf(counts: Counts, chosen: readonly [number, number]): Sum {
  const [from, until] = timesOf(counts, chosen);
  const found = counts.parts.filter(({ at }) => at >= from && at < until);
  const total = (name: "lines" | "errors" | "warnings") => found.reduce((sum, each) => sum + each[name], 0);
  return { from, until, lines: total("lines"), errors: total("errors"), warnings: total("warnings") };
}

interface BarsProps {
  readonly counts: Counts;
  readonly chosen: readonly [number, number] | undefined;
  readonly setChosen: (chosen: readonly [number, number] | undefined) => void;
  readonly choose: (chosen: readonly [number, number]) => void;
}

/** The bars: with the pointer, and with arrows, Shift and Enter. */
function Bars({ counts, chosen, setChosen, choose }: BarsProps) {
  const dragsFrom = useRef<number>(undefined);
  const last = counts.parts.length - 1;
  const partAt = ({ currentTarget, clientX }: PointerEvent) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    return Math.max(0, Math.min(last, Math.floor(((clientX - left) / width) * (last + 1))));
  };
  const [from, to] = chosen ?? [last, last];
  const onKeyDown = (event: KeyboardEvent) => {
    // The first press of an arrow shows which part is chosen.
    const [left, right] = chosen === undefined ? [last, last] : [Math.max(0, to - 1), Math.min(last, to + 1)];
    const next = { ArrowLeft: left, ArrowRight: right, Home: 0, End: last }[event.key];
    if (event.key === "Enter") choose([from, to]);
    else if (event.key === "Escape") setChosen(undefined);
    else if (next !== undefined) setChosen([event.shiftKey ? from : next, next]);
    else return;
    event.preventDefault();
  };
  const spoken = sumOf(counts, [from, to]);
  return (
    <div
      role="slider"
      tabIndex={0}
      aria-label="Lines over time; Enter shows the chosen part, Shift with arrows chooses several"
      aria-valuemin={0}
      aria-valuemax={last}
      aria-valuenow={to}
      aria-valuetext={`${clockTime(spoken.from)} to ${clockTime(spoken.until)}: ${plural(spoken.lines, "line")}, ${plural(spoken.errors, "error")}, ${plural(spoken.warnings, "warning")}`}
      className="relative min-h-0 flex-1 cursor-crosshair touch-pan-y"
      onKeyDown={onKeyDown}
      onBlur={() => setChosen(undefined)}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        dragsFrom.current = partAt(event);
        setChosen([dragsFrom.current, dragsFrom.current]);
      }}
      onPointerMove={(event) => setChosen([dragsFrom.current ?? partAt(event), partAt(event)])}
      onPointerUp={(event) => {
        if (dragsFrom.current !== undefined) choose([dragsFrom.current, partAt(event)]);
        dragsFrom.current = undefined;
      }}
      onPointerCancel={() => (dragsFrom.current = undefined)}
      onPointerLeave={() => dragsFrom.current === undefined && setChosen(undefined)}
    >
      <Drawing counts={counts} />
      {chosen !== undefined && (
        <div
          className="pointer-events-none absolute inset-y-0 bg-accent/15"
          style={{
            left: `${(Math.min(from, to) / (last + 1)) * 100}%`,
            width: `${((Math.abs(to - from) + 1) / (last + 1)) * 100}%`,
          }}
        />
      )}
    </div>
  );
}

// Of the highest bar, so that a single error is seen beside thousands of lines.
const least = 0.06;

function Drawing({ counts: { parts: all } }: { readonly counts: Counts }) {
  const bars = useMemo(() => {
    const most = Math.max(1, ...all.map(({ lines }) => lines));
    const heightOf = (count: number) => (count === 0 ? 0 : Math.max(least, count / most));
    return all.flatMap(({ lines, errors, warnings }, index) => {
      const bad = heightOf(errors);
      const warn = heightOf(warnings);
      const rest = Math.max(0, heightOf(lines) - bad - warn);
      return [
        { colour: "fill-bad", from: 0, height: bad },
        { colour: "fill-warn", from: bad, height: warn },
        { colour: "fill-strong", from: bad + warn, height: rest },
      ].flatMap(({ colour, from, height }) => (height === 0 ? [] : [{ index, colour, y: 1 - from - height, height }]));
    });
  }, [all]);
  return (
    <svg
      aria-hidden
      viewBox={`0 0 ${all.length} 1`}
      preserveAspectRatio="none"
      className="absolute inset-0 size-full border-b border-line"
    >
      {bars.map(({ index, colour, y, height }) => (
        <rect key={`${index} ${colour}`} className={colour} x={index + 0.1} y={y} width={0.8} height={height} />
      ))}
    </svg>
  );
}
