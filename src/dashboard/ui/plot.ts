import uPlot from "uplot";
import { clusterLabel, clusterMarkers, type Cluster, type Marker } from "../data/cluster-markers.ts";
import { foldCrashes, type CrashMark, type Crashes } from "../data/fold-crashes.ts";

export interface Series {
  readonly label: string;
  /** A colour of the theme, such as `accent`. */
  readonly colour: "accent" | "ok" | "busy" | "warn" | "bad" | "faint";
  /** Null leaves a gap: nothing was measured. */
  readonly values: readonly (number | null)[];
  readonly fill?: boolean;
}

export interface Drawn {
  /** Seconds since 1970. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly markers: readonly Marker[];
  readonly crashes?: readonly Crashes[];
  readonly format: (value: number) => string;
  /** The minimum height of the scale, so that tiny values do not look large. */
  readonly least?: number;
  /** In CSS pixels. */
  readonly height?: number;
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
  /** The crashes under the pointer. */
  readonly crashes: CrashMark | undefined;
}

// The widest label is a range of two numbers with four digits.
const labelWidth = 72;
const labelHeight = 18;
const nearPx = 8;

/** Draws a chart into an element. Charts of a page share cursor and zoom. `drawn` returns the current data whenever the chart needs it. */
export function createPlot(
  element: HTMLElement,
  drawn: () => Drawn,
  onHover: (hover: Hover | undefined) => void,
): uPlot {
  const { series, format, least = 0, height = chartHeight, isBinary = false } = drawn();
  const options = optionsOf({ width: element.clientWidth, height, series, format, least, isBinary });
  const hooks: uPlot.Hooks.Arrays = {
    draw: [
      (plot) => drawMarkers(plot, drawn().markers, markerColours()),
      (plot) => drawCrashes(plot, marksIn(plot, drawn().crashes), cssColour("bad")),
    ],
    setCursor: [(plot) => onHover(hoverOf(plot, drawn()))],
    setScale: [(plot, scale) => scale === "x" && drawn().onZoom(zoomOf(plot))],
  };
  const plot = new uPlot({ ...options, hooks }, dataOf(drawn()), element);
  updatePlot(plot, drawn());
  return plot;
}

export const chartHeight = 180;

/** The charts of a page share their cursor under this key. */
export const syncKey = "metrics";

function zoomOf({ scales, data: [times] }: uPlot): Zoom | undefined {
  const { min, max } = scales["x"] ?? {};
  if (typeof min !== "number" || typeof max !== "number") return undefined;
  return min === times[0] && max === times.at(-1) ? undefined : { from: Math.round(min), to: Math.round(max) };
}

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

function hoverOf(plot: uPlot, { markers, crashes }: Drawn): Hover | undefined {
  const { cursor, bbox } = plot;
  const { idx, left = -1 } = cursor;
  if (idx === null || idx === undefined || left < 0) return undefined;
  const isNear = ({ from, to }: { from: number; to: number }) => left >= from - nearPx && left <= to + nearPx;
  const near = clustersIn(plot, markers).find(isNear);
  return {
    index: idx,
    left: left + bbox.left / devicePixelRatio,
    isRight: left * devicePixelRatio > bbox.width / 2,
    markers: near?.markers ?? [],
    crashes: marksIn(plot, crashes).find(isNear),
  };
}

function optionsOf({
  width,
  height,
  series,
  format,
  least,
  isBinary,
}: Required<Pick<Drawn, "height" | "series" | "format" | "least" | "isBinary">> & {
  readonly width: number;
}): uPlot.Options {
  const axis = {
    stroke: cssColour("faint"),
    grid: { stroke: cssColour("line"), width: 1 },
    ticks: { show: false },
    font: '11px "Geist Variable", sans-serif',
  };
  return {
    width,
    height,
    // At the top for the labels of deployments, at the right for half of the last time's label.
    padding: [labelHeight, 18, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: syncKey }, points: { size: 6 }, y: false },
    scales: { y: { range: (_, __, max) => [0, Math.max(max * 1.1, least, Number.EPSILON)] } },
    axes: [
      { ...axis, size: 26, values: (_, ticks) => ticks.map((tick) => timeAt(tick, (ticks[1] ?? 0) - (ticks[0] ?? 0))) },
      {
        ...axis,
        size: 62,
        values: (_, ticks) => ticks.map(format),
        space: 34,
        incrs: isBinary ? powersOfTwo : roundSteps,
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
        ...(fill ? { fill: cssColour(name, 12) } : {}),
      })),
    ],
  };
}

// Without uPlot's 2.5, whose multiples need a decimal more than the others.
const roundSteps = Array.from({ length: 15 }, (_, power) =>
  [1, 2, 5].map((step) => Number(`${step}e${power - 3}`)),
).flat();
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
function cssColour(name: string, percent = 100): string {
  const probe = document.createElement("span");
  probe.style.color = `color-mix(in oklch, var(--${name}) ${percent}%, transparent)`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

const markerColours = (): MarkerColours => ({
  line: cssColour("strong"),
  band: cssColour("faint", 6),
  text: cssColour("muted"),
});

function drawMarkers(plot: uPlot, markers: readonly Marker[], colours: MarkerColours): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.font = `${11 * devicePixelRatio}px "Geist Variable", sans-serif`;
  // uPlot's axes set another text baseline.
  ctx.textBaseline = "alphabetic";
  ctx.textAlign = "left";
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const cluster of clustersIn(plot, markers)) {
    const [from, to] = [bbox.left + cluster.from * devicePixelRatio, bbox.left + cluster.to * devicePixelRatio];
    ctx.fillStyle = colours.band;
    if (to > from) ctx.fillRect(from, bbox.top, to - from, bbox.height);
    ctx.strokeStyle = colours.line;
    ctx.beginPath();
    for (const x of new Set([from, to])) {
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
    }
    ctx.stroke();
    drawLabel(plot, cluster, colours.text);
  }
  ctx.restore();
}

interface MarkerColours {
  readonly line: string;
  readonly band: string;
  readonly text: string;
}

/** Draws the label of a cluster above its first line, to the right of it or as far to the right as the chart goes. */
function drawLabel({ ctx, bbox }: uPlot, cluster: Cluster, colour: string): void {
  const text = clusterLabel(cluster);
  const { width } = ctx.measureText(text);
  const left = Math.min(bbox.left + cluster.from * devicePixelRatio, bbox.left + bbox.width - width);
  ctx.fillStyle = colour;
  ctx.fillText(text, left, bbox.top - 5 * devicePixelRatio);
}

// The width of a mark, and the space to the next one.
const markWidth = 10;

/** Returns the crashes in the visible part, those whose marks would touch as one. */
function marksIn(plot: uPlot, crashes: readonly Crashes[] = []): readonly CrashMark[] {
  const chart = plot.bbox.width / devicePixelRatio;
  return foldCrashes(crashes, ({ at }) => plot.valToPos(at, "x"), { chart, mark: markWidth });
}

/** Draws a cross on the time axis for each mark, and a bar to its end if it stands for several points. */
function drawCrashes({ ctx, bbox }: uPlot, marks: readonly CrashMark[], colour: string): void {
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 2 * devicePixelRatio;
  const half = 3.5 * devicePixelRatio;
  const y = bbox.top + bbox.height - half - 2 * devicePixelRatio;
  for (const mark of marks) {
    const [from, to] = [bbox.left + mark.from * devicePixelRatio, bbox.left + mark.to * devicePixelRatio];
    ctx.beginPath();
    ctx.moveTo(from - half, y - half);
    ctx.lineTo(from + half, y + half);
    ctx.moveTo(from - half, y + half);
    ctx.lineTo(from + half, y - half);
    ctx.moveTo(from, y);
    ctx.lineTo(to, y);
    ctx.stroke();
  }
  ctx.restore();
}

/** Returns the deployments in the visible part, those too close to be labelled apart as one. */
function clustersIn(plot: uPlot, markers: readonly Marker[]): readonly Cluster[] {
  const chart = plot.bbox.width / devicePixelRatio;
  return clusterMarkers(markers, ({ at }) => plot.valToPos(at, "x"), { chart, label: labelWidth });
}
