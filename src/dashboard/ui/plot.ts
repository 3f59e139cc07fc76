import uPlot from "uplot";

export interface Series {
  readonly label: string;
  /** A colour of the theme, such as `accent`. */
  readonly colour: "accent" | "ok" | "busy" | "warn" | "bad" | "faint";
  /** Null leaves a gap: nothing was measured. */
  readonly values: readonly (number | null)[];
  readonly fill?: boolean;
}

export interface Marker {
  readonly at: number;
  readonly label: string;
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
}

const labelWidth = 32;

/** Draws a chart into an element. Charts of a page share cursor and zoom. `drawn` returns the current data whenever the chart needs it. */
export function createPlot(
  element: HTMLElement,
  drawn: () => Drawn,
  onHover: (hover: Hover | undefined) => void,
): uPlot {
  const { series, format, least = 0, isBinary = false } = drawn();
  const options = optionsOf({ width: element.clientWidth, series, format, least, isBinary });
  const hooks: uPlot.Hooks.Arrays = {
    draw: [(plot) => drawMarkers(plot, drawn().markers, cssColour("strong"))],
    setCursor: [(plot) => onHover(hoverOf(plot))],
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

function hoverOf({ cursor, bbox }: uPlot): Hover | undefined {
  const { idx, left = -1 } = cursor;
  if (idx === null || idx === undefined || left < 0) return undefined;
  return { index: idx, left: left + bbox.left / devicePixelRatio, isRight: left * devicePixelRatio > bbox.width / 2 };
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

function drawMarkers(plot: uPlot, markers: readonly Marker[], colour: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.fillStyle = colour;
  ctx.font = `${11 * devicePixelRatio}px "Geist Variable", sans-serif`;
  // uPlot's axes leave another baseline set.
  ctx.textBaseline = "alphabetic";
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  // Newest first: where two labels would overlap, the newer one is shown.
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
    // At the right edge the label moves to the left of its line.
    const { width } = ctx.measureText(label);
    const isAtEdge = x + width + 6 * devicePixelRatio > bbox.left + bbox.width;
    const left = isAtEdge ? x - width - 3 * devicePixelRatio : x + 3 * devicePixelRatio;
    ctx.textAlign = "left";
    ctx.clearRect(left, bbox.top, width, 13 * devicePixelRatio);
    ctx.fillText(label, left, bbox.top + 10 * devicePixelRatio);
  }
  ctx.restore();
}
