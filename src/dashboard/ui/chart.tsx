import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { Button } from "./button.tsx";

export interface Series {
  readonly label: string;
  /** A colour of the theme, such as `accent`. */
  readonly colour: "accent" | "ok" | "busy" | "warn" | "bad" | "faint";
  /** Null where nothing was measured: a gap. */
  readonly values: readonly (number | null)[];
  readonly fill?: boolean;
}

export interface Marker {
  readonly at: number;
  readonly label: string;
}

interface ChartProps {
  readonly title: string;
  /** Seconds since 1970. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly markers: readonly Marker[];
  readonly format: (value: number) => string;
  /** The least height of the scale, so that next to nothing does not look like a lot. */
  readonly least?: number;
}

const height = 168;
const labelWidth = 32;

/** Charts of a page share cursor and zoom. What it draws stands in a table behind a button too. */
export function Chart({ title, times, series, markers, format, least = 0 }: ChartProps) {
  const holder = useRef<HTMLDivElement>(null);
  const [asTable, setAsTable] = useState(false);
  const scheme = useScheme();
  useEffect(() => {
    const element = holder.current;
    if (element === null) return;
    const plot = new uPlot(
      optionsOf({ width: element.clientWidth, series, markers, format, least }),
      [[...times], ...series.map(({ values }) => [...values])] as uPlot.AlignedData,
      element,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [times, series, markers, format, least, scheme, asTable]);
  return (
    <section className="flex min-w-0 flex-col gap-2">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h2 className="font-semibold">{title}</h2>
        <ul className="flex flex-wrap items-center gap-3 text-xs text-muted">
          {series.map(({ label, colour }) => (
            <li key={label} className="flex items-center gap-1.5">
              <span aria-hidden className="h-0.5 w-3 rounded-full" style={{ background: `var(--${colour})` }} />
              {label}
            </li>
          ))}
          <li>
            <Button look="quiet" className="h-7" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
              {asTable ? "Chart" : "Table"}
            </Button>
          </li>
        </ul>
      </div>
      {asTable ? (
        <Numbers title={title} times={times} series={series} format={format} />
      ) : (
        <div
          ref={holder}
          role="img"
          aria-label={`${title}; the button Table shows the numbers`}
          style={{ height }}
          className="min-w-0"
        />
      )}
    </section>
  );
}

function optionsOf({
  width,
  series,
  markers,
  format,
  least,
}: Required<Pick<ChartProps, "series" | "markers" | "format" | "least">> & { readonly width: number }): uPlot.Options {
  const axis = {
    stroke: cssColour("faint"),
    grid: { stroke: cssColour("line"), width: 1 },
    ticks: { show: false },
    font: '11px "Geist Variable", sans-serif',
  };
  return {
    width,
    height,
    // Half of the last time's label stands right of its tick.
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: "metrics" }, points: { size: 6 }, y: false },
    scales: { y: { range: (_, __, max) => [0, Math.max(max * 1.1, least, Number.EPSILON)] } },
    axes: [
      { ...axis, size: 26, values: (_, ticks) => ticks.map((tick) => timeAt(tick, (ticks[1] ?? 0) - (ticks[0] ?? 0))) },
      { ...axis, size: 62, values: (_, ticks) => ticks.map(format), space: 34 },
    ],
    series: [
      {},
      ...series.map(({ label, colour: name, fill = false }) => ({
        label,
        stroke: cssColour(name),
        width: 1.5,
        spanGaps: false,
        points: { show: false, size: 5, fill: cssColour(name), filter: alonePoints },
        ...(fill ? { fill: withAlpha(cssColour(name)) } : {}),
      })),
    ],
    hooks: {
      draw: [(plot) => drawMarkers(plot, markers, cssColour("strong"))],
      setCursor: [(plot) => showValues(plot, series, format)],
    },
  };
}

/** Values between two gaps: no line leads to them. */
function alonePoints(plot: uPlot, index: number): number[] | null {
  const isMeasured = Array.from(plot.data[index] ?? [], (value) => value !== null && value !== undefined);
  const found = Array.from(isMeasured.keys()).filter(
    (at) => isMeasured[at] === true && isMeasured[at - 1] !== true && isMeasured[at + 1] !== true,
  );
  return found.length === 0 ? null : found;
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const daySeconds = 86_400;

/** A tick of the time axis: the hour, and the day where one begins. */
function timeAt(seconds: number, stepSeconds: number): string {
  const at = new Date(seconds * 1000);
  const isMidnight = at.getHours() === 0 && at.getMinutes() === 0;
  return stepSeconds >= daySeconds || isMidnight ? day.format(at) : clock.format(at);
}

// Canvas knows no custom properties, so the browser resolves them.
function cssColour(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function withAlpha(colour: string): string {
  return colour.startsWith("oklch") ? colour.replace(/\)$/, " / 0.12)") : colour;
}

function drawMarkers(plot: uPlot, markers: readonly Marker[], colour: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.fillStyle = colour;
  ctx.font = `${11 * devicePixelRatio}px "Geist Variable", sans-serif`;
  // The axes leave theirs.
  ctx.textBaseline = "alphabetic";
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  // From the newest on: where two labels would overlap, the newer one is shown.
  const shown = markers
    .map(({ at, label }) => ({ x: plot.valToPos(at, "x", true), label }))
    .filter(({ x }) => x >= bbox.left && x <= bbox.left + bbox.width)
    .toSorted((a, b) => b.x - a.x);
  for (const { x } of shown) {
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  let labelled = Number.POSITIVE_INFINITY;
  for (const { x, label } of shown) {
    if (labelled - x < labelWidth * devicePixelRatio) continue;
    labelled = x;
    // Left of the last line at the right edge.
    const { width } = ctx.measureText(label);
    const isAtEdge = x + width + 6 * devicePixelRatio > bbox.left + bbox.width;
    const left = isAtEdge ? x - width - 3 * devicePixelRatio : x + 3 * devicePixelRatio;
    ctx.textAlign = "left";
    ctx.clearRect(left, bbox.top, width, 13 * devicePixelRatio);
    ctx.fillText(label, left, bbox.top + 10 * devicePixelRatio);
  }
  ctx.restore();
}

function showValues(plot: uPlot, series: readonly Series[], format: (value: number) => string): void {
  const { idx } = plot.cursor;
  const at = idx === null || idx === undefined ? undefined : plot.data[0][idx];
  if (idx === null || idx === undefined || at === undefined) return void (plot.root.title = "");
  const values = series.map(
    ({ label, values: all }) => `${label}: ${all[idx] === null || all[idx] === undefined ? "–" : format(all[idx])}`,
  );
  plot.root.title = [new Date(at * 1000).toLocaleString("en-GB"), ...values].join("\n");
}

/** Changes when light and dark change, so that charts are drawn anew. */
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

function Numbers({ title, times, series, format }: Pick<ChartProps, "title" | "times" | "series" | "format">) {
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
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {times.map((time, index) => (
            <tr key={time}>
              <td className="px-3 py-1">{new Date(time * 1000).toLocaleString("en-GB")}</td>
              {series.map(({ label, values }) => (
                <td key={label} className="px-3 text-right">
                  {values[index] === null || values[index] === undefined ? "–" : format(values[index])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
