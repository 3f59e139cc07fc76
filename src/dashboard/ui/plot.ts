import uPlot from "uplot";
import { clusterLabel, clusterMarkers, type Cluster, type Marker } from "../data/cluster-markers.ts";

export interface Series {
  readonly label: string;
  /** A colour of the theme, such as `accent`. */
  readonly colour: "accent" | "ok" | "busy" | "warn" | "bad" | "faint";
  /** Null leaves a gap: nothing was measured. */
  readonly values: readonly (number | null)[];
  readonly fill?: boolean;
}

/** What a chart draws. */
export interface Drawn {
  /** Seconds since 1970. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly markers: readonly Marker[];
  readonly format: (value: number) => string;
  /** The minimum height of the scale, so that tiny values do not look large. */
  readonly least?: number;
  /** The scale's ticks are powers of two. */
  readonly isBinary?: boolean;
  /** The visible part; undefined shows all. */
  readonly zoom: Zoom | undefined;
  /** Called when the reader zooms; undefined means back to all. */
  readonly onZoom: (zoom: Zoom | undefined) => void;
}

/** Seconds since 1970. */
export interface Zoom {
  readonly from: number;
  readonly to: number;
}

/** The point under the pointer: its index in the data, and its position in the chart. */
export interface Hover {
  readonly index: number;
  readonly left: number;
  readonly isRight: boolean;
  /** The deployments under the pointer. */
  readonly markers: readonly Marker[];
}

const labelWidth = 48;
const nearPx = 8;

/** Draws a chart into an element. Charts of a page share cursor and zoom. `drawn` returns the current data whenever the chart needs it. */
export function createPlot(
  element: HTMLElement,
  drawn: () => Drawn,
  onHover: (hover: Hover | undefined) => void,
): uPlot {
  const { series, format, least = 0, isBinary = false } = drawn();
  const options = optionsOf({ width: element.clientWidth, series, format, least, isBinary });
  const hooks: uPlot.Hooks.Arrays = {
    draw: [(plot) => drawMarkers(plot, drawn().markers, { line: cssColour("strong"), band: cssColour("faint") })],
    setCursor: [(plot) => onHover(hoverOf(plot, drawn().markers))],
    setScale: [(plot, scale) => scale === "x" && drawn().onZoom(zoomOf(plot))],
  };
  const plot = new uPlot({ ...options, hooks }, dataOf(drawn()), element);
  updatePlot(plot, drawn());
  return plot;
}

function zoomOf({ scales, data: [times] }: uPlot): Zoom | undefined {
  const { min, max } = scales["x"] ?? {};
  if (typeof min !== "number" || typeof max !== "number") return undefined;
  return min === times[0] && max === times.at(-1) ? undefined : { from: Math.round(min), to: Math.round(max) };
}

export const height = 168;

/** Redraws the chart with newer data or another zoom. */
export function updatePlot(plot: uPlot, drawn: Drawn): void {
  const { zoom } = drawn;
  if (zoom === undefined) return plot.setData(dataOf(drawn));
  plot.batch(() => {
    plot.setData(dataOf(drawn), false);
    plot.setScale("x", { min: zoom.from, max: zoom.to });
  });
}

function dataOf({ times, series }: Drawn): uPlot.AlignedData {
  return [[...times], ...series.map(({ values }) => [...values])] as uPlot.AlignedData;
}

function hoverOf(plot: uPlot, markers: readonly Marker[]): Hover | undefined {
  const { cursor, bbox } = plot;
  const { idx, left = -1 } = cursor;
  if (idx === null || idx === undefined || left < 0) return undefined;
  const near = clustersIn(plot, markers).find(({ from, to }) => left >= from - nearPx && left <= to + nearPx);
  return {
    index: idx,
    left: left + bbox.left / devicePixelRatio,
    isRight: left * devicePixelRatio > bbox.width / 2,
    markers: near?.markers ?? [],
  };
}

function optionsOf({
  width,
  series,
  format,
  least,
  isBinary,
}: Required<Pick<Drawn, "series" | "format" | "least" | "isBinary">> & { readonly width: number }): uPlot.Options {
  const axis = {
    stroke: cssColour("faint"),
    grid: { stroke: cssColour("line"), width: 1 },
    ticks: { show: false },
    font: '11px "Geist Variable", sans-serif',
  };
  return {
    width,
    height,
    // The right half of the last time's label needs space.
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: "metrics" }, points: { size: 6 }, y: false },
    scales: { y: { range: (_, __, max) => [0, Math.max(max * 1.1, least, Number.EPSILON)] } },
    axes: [
      { ...axis, size: 26, values: (_, ticks) => ticks.map((tick) => timeAt(tick, (ticks[1] ?? 0) - (ticks[0] ?? 0))) },
      {
        ...axis,
        size: 62,
        values: (_, ticks) => ticks.map(format),
        space: 34,
        ...(isBinary ? { incrs: powersOfTwo } : {}),
      },
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
  };
}

const powersOfTwo = Array.from({ length: 50 }, (_, power) => 2 ** power);

/** Returns the values between two gaps, which need a point because no line reaches them. */
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

/** Returns a label of the time axis: the time, or the date at midnight. */
function timeAt(seconds: number, stepSeconds: number): string {
  const at = new Date(seconds * 1000);
  const isMidnight = at.getHours() === 0 && at.getMinutes() === 0;
  return stepSeconds >= daySeconds || isMidnight ? day.format(at) : clock.format(at);
}

// A canvas can't read custom properties, so the browser resolves them here.
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

function drawMarkers(plot: uPlot, markers: readonly Marker[], colours: MarkerColours): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.font = `${11 * devicePixelRatio}px "Geist Variable", sans-serif`;
  // uPlot's axes leave another baseline set.
  ctx.textBaseline = "alphabetic";
  ctx.textAlign = "left";
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const cluster of clustersIn(plot, markers)) {
    const [from, to] = [bbox.left + cluster.from * devicePixelRatio, bbox.left + cluster.to * devicePixelRatio];
    ctx.fillStyle = withAlpha(colours.band);
    if (to > from) ctx.fillRect(from, bbox.top, to - from, bbox.height);
    ctx.strokeStyle = colours.line;
    ctx.beginPath();
    ctx.moveTo(to, bbox.top);
    ctx.lineTo(to, bbox.top + bbox.height);
    ctx.stroke();
    drawLabel(plot, { text: clusterLabel(cluster), x: to, colour: colours.line });
  }
  ctx.restore();
}

interface MarkerColours {
  readonly line: string;
  readonly band: string;
}

interface Label {
  readonly text: string;
  readonly x: number;
  readonly colour: string;
}

/** Draws a label at the right of its line, or at the left where it would leave the chart. */
function drawLabel({ ctx, bbox }: uPlot, { text, x, colour }: Label): void {
  const { width } = ctx.measureText(text);
  const isAtEdge = x + width + 6 * devicePixelRatio > bbox.left + bbox.width;
  const left = isAtEdge ? x - width - 3 * devicePixelRatio : x + 3 * devicePixelRatio;
  ctx.clearRect(left, bbox.top, width, 13 * devicePixelRatio);
  ctx.fillStyle = colour;
  ctx.fillText(text, left, bbox.top + 10 * devicePixelRatio);
}

/** Returns the deployments in the visible part, those too close to be told apart as one; places are in CSS pixels from the left. */
function clustersIn(plot: uPlot, markers: readonly Marker[]): readonly Cluster[] {
  const placeOf = ({ at }: Marker) => plot.valToPos(at, "x");
  const width = plot.bbox.width / devicePixelRatio;
  const visible = markers.filter((marker) => placeOf(marker) >= 0 && placeOf(marker) <= width);
  return clusterMarkers(visible, placeOf, labelWidth);
}
