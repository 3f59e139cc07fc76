import "uplot/dist/uPlot.min.css";
import uPlot from "uplot";
import { useEffect, useRef, useState, useMemo, type FocusEvent, type KeyboardEvent, type RefObject } from "react";
import { X } from "lucide-react";
import { crashText } from "../data/fold-crashes.ts";
import { Button } from "./button.tsx";
import { chartHeight, createPlot, updatePlot, syncKey, type Drawn, type Hover, type Zoom } from "./plot.ts";

interface TitledProps extends Drawn {
  readonly title: string;
}

interface ChartProps extends TitledProps {
  /** What it shows, in plain words. */
  readonly about?: string;
}

/** A chart in a row of several, without a legend: its title says what it shows. */
export function SmallChart({ title, ...drawn }: TitledProps) {
  return (
    <section className="flex min-w-0 flex-col gap-1">
      <h3 className="text-xs text-muted">{title}</h3>
      <Plot title={title} height={smallHeight} {...drawn} />
    </section>
  );
}

const smallHeight = 128;

/** A chart, or its numbers as a table on demand. All charts of a page share cursor and zoom, which keys move as well as the pointer. */
export function Chart({ title, about, ...drawn }: ChartProps) {
  const [asTable, setAsTable] = useState(false);
  return (
    <section className="flex min-w-0 flex-col gap-2">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h2 className="font-semibold">{title}</h2>
        <ul className="flex flex-wrap items-center gap-3 text-xs text-muted">
          {drawn.series.map(({ label, colour }) => (
            <li key={label} className="flex items-center gap-1.5">
              <Swatch colour={colour} />
              {label}
            </li>
          ))}
          {(drawn.crashes?.length ?? 0) > 0 && (
            <li className="flex items-center gap-1.5">
              <X aria-hidden size={12} strokeWidth={3} className="text-bad" />
              crashes
            </li>
          )}
          <li>
            <Button look="quiet" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
              {asTable ? "Chart" : "Table"}
            </Button>
          </li>
        </ul>
      </div>
      {asTable ? <Numbers title={title} {...drawn} /> : <Plot title={title} {...drawn} />}
      {about !== undefined && <p className="max-w-[80ch] text-xs text-pretty text-faint">{about}</p>}
    </section>
  );
}

function Swatch({ colour }: { readonly colour: string }) {
  return <span aria-hidden className="h-0.5 w-3 rounded-full" style={{ background: `var(--${colour})` }} />;
}

function Plot({ title, ...drawn }: ChartProps) {
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const present = useRef<Drawn>(drawn);
  const [hover, setHover] = useState<Hover>();
  const scheme = useScheme();
  const { times, series, zoom, height = chartHeight } = drawn;
  const keys = useChartKeys(plot, present);
  present.current = drawn;
  useEffect(() => {
    const element = holder.current;
    if (element === null) return;
    const made = createPlot(element, () => present.current, setHover);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current = null;
      made.destroy();
    };
  }, [scheme]);
  useEffect(() => {
    if (plot.current !== null) updatePlot(plot.current, present.current);
  }, [times, series, zoom]);
  return (
    <div className="relative min-w-0">
      <div
        ref={holder}
        role="slider"
        tabIndex={0}
        aria-label={`${title} over time; the button Table shows the numbers`}
        aria-valuemin={0}
        aria-valuemax={times.length - 1}
        aria-valuenow={hover?.index ?? times.length - 1}
        aria-valuetext={spokenAt(hover?.index ?? times.length - 1, drawn)}
        style={{ height }}
        {...keys}
      />
      {hover !== undefined && <Values hover={hover} {...drawn} />}
    </div>
  );
}

/** Returns the values of a point as a sentence. */
function spokenAt(index: number, { times, series, format, crashes }: Drawn): string {
  const at = times[index];
  if (at === undefined) return "no values";
  const crashed = crashes?.find((each) => each.at === at);
  const values = series.map(({ label, values: own }) => `${label} ${textOf(own[index], format)}`);
  return `${timeText(at)}: ${[...values, ...(crashed === undefined ? [] : [crashText(crashed)])].join(", ")}`;
}

/** Shows the values under the pointer, beside it. */
function Values({
  hover: { index, left, isRight, markers, crashes },
  times,
  series,
  format,
}: Drawn & { readonly hover: Hover }) {
  const at = times[index];
  if (at === undefined) return null;
  return (
    <div
      aria-hidden
      data-hover
      className={`pointer-events-none absolute top-2 z-[1] flex flex-col gap-0.5 rounded-md border border-line bg-raised px-2.5 py-1.5 text-xs whitespace-nowrap shadow-float ${isRight ? "-translate-x-full -ml-3" : "ml-3"}`}
      style={{ left }}
    >
      <span className="text-faint">{timeText(at)}</span>
      {series.map(({ label, colour, values }) => (
        <span key={label} className="flex items-center gap-1.5">
          <Swatch colour={colour} />
          <span className="text-muted">{label}</span>
          <span className="ml-auto pl-3 font-medium">{textOf(values[index], format)}</span>
        </span>
      ))}
      {crashes !== undefined && (
        <span className="mt-1 border-t border-line pt-1 font-medium text-bad">{crashText(crashes)}</span>
      )}
      {markers.length > 0 && <Deployments markers={markers} />}
    </div>
  );
}

const mostListed = 6;

function Deployments({ markers }: Pick<Hover, "markers">) {
  const shown = markers.toReversed().slice(0, mostListed);
  return (
    <span className="mt-1 flex flex-col gap-0.5 border-t border-line pt-1">
      {shown.map(({ number, at }) => (
        <span key={number} className="flex gap-3">
          <span className="font-medium">#{number} live</span>
          <span className="ml-auto text-faint">{new Date(at * 1000).toLocaleTimeString("en-GB")}</span>
        </span>
      ))}
      {markers.length > shown.length && <span className="text-faint">and {markers.length - shown.length} before</span>}
    </span>
  );
}

const timeText = (seconds: number) => new Date(seconds * 1000).toLocaleString("en-GB", short);
const short = { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" } as const;

function textOf(value: number | null | undefined, format: Drawn["format"]): string {
  return value === null || value === undefined ? "–" : format(value);
}

/** Returns a value that changes with the light and dark scheme, so that charts are redrawn. */
function useScheme(): string {
  const read = () => getComputedStyle(document.body).color;
  const [scheme, setScheme] = useState(read);
  useEffect(() => {
    const update = () => setScheme(read());
    const media = matchMedia("(prefers-color-scheme: dark)");
    const observer = new MutationObserver(update);
    media.addEventListener("change", update);
    observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => {
      media.removeEventListener("change", update);
      observer.disconnect();
    };
  }, []);
  return scheme;
}

function Numbers({ title, times, series, format, crashes = [] }: ChartProps) {
  const crashed = new Map(crashes.map((each) => [each.at, each]));
  return (
    <div tabIndex={0} className="max-h-72 overflow-auto rounded-md border border-line">
      <table className="w-full text-sm">
        <caption className="sr-only">{title}</caption>
        <thead className="sticky top-0 bg-panel text-left text-xs text-faint">
          <tr>
            <th scope="col" className="h-8 px-3 font-medium">
              Time
            </th>
            {series.map(({ label }) => (
              <th key={label} scope="col" className="px-3 text-right font-medium">
                {label}
              </th>
            ))}
            {crashes.length > 0 && (
              <th scope="col" className="px-3 text-right font-medium">
                crashes
              </th>
            )}
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {times.map((time, index) => (
            <tr key={time}>
              <td className="px-3 py-1">{new Date(time * 1000).toLocaleString("en-GB")}</td>
              {series.map(({ label, values }) => (
                <td key={label} className="px-3 text-right">
                  {textOf(values[index], format)}
                </td>
              ))}
              {crashes.length > 0 && <td className="px-3 text-right">{crashed.get(time)?.count ?? ""}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const fewestPoints = 4;
const stepsOf: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };
const zoomsOf: Readonly<Record<string, number>> = { "+": 0.5, "=": 0.5, "-": 2 };

interface ChartKeys {
  onKeyDown(event: KeyboardEvent): void;
  onBlur(event: FocusEvent): void;
}

/** Handles a chart's keys: arrows move the cursor of all charts, `+` and `-` zoom at the cursor, Escape shows all again. */
function useChartKeys(plot: RefObject<uPlot | null>, drawn: RefObject<Drawn>): ChartKeys {
  return useMemo(
    () => ({
      onKeyDown(event) {
        if (plot.current === null || event.ctrlKey || event.metaKey || event.altKey) return;
        if (handleKey(event.key, plot.current, drawn.current)) event.preventDefault();
      },
      onBlur: () => setCursors(undefined),
    }),
    [plot, drawn],
  );
}

function handleKey(key: string, plot: uPlot, { times, zoom, onZoom }: Drawn): boolean {
  const [first = 0, last = 0] = plot.series[0]?.idxs ?? [];
  const at = Math.min(last, Math.max(first, plot.cursor.idx ?? last));
  const goal = { Home: first, End: last }[key] ?? at + (stepsOf[key] ?? 0);
  if (key in stepsOf || key === "Home" || key === "End") setCursors(times[Math.min(last, Math.max(first, goal))]);
  else if (zoomsOf[key] !== undefined) onZoom(zoomAround(plot, times, { at: times[at] ?? 0, by: zoomsOf[key] }));
  else if (key === "Escape" && zoom !== undefined) onZoom(undefined);
  else return false;
  return true;
}

/** Returns the visible part made longer or shorter around an instant; undefined if that is all. */
function zoomAround(
  { scales }: uPlot,
  times: readonly number[],
  { at, by }: { readonly at: number; readonly by: number },
): Zoom | undefined {
  const [begin = 0, second = 0] = times;
  const end = times.at(-1) ?? 0;
  const [min, max] = [scales["x"]?.min ?? begin, scales["x"]?.max ?? end];
  const span = Math.max((max - min) * by, fewestPoints * (second - begin));
  if (span >= end - begin) return undefined;
  const from = Math.round(Math.min(Math.max(begin, at - span / 2), end - span));
  return { from, to: Math.round(from + span) };
}

/** Puts the cursor of all charts to an instant, or away. */
function setCursors(at: number | undefined): void {
  for (const plot of uPlot.sync(syncKey).plots)
    plot.setCursor({ left: at === undefined ? -10 : plot.valToPos(at, "x"), top: at === undefined ? -10 : 1 });
}
