import { useMemo, type FocusEvent, type KeyboardEvent, type RefObject } from "react";
import uPlot from "uplot";
import { syncKey, type Drawn, type Zoom } from "./plot.ts";

const fewestPoints = 4;
const stepsOf: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };
const zoomsOf: Readonly<Record<string, number>> = { "+": 0.5, "=": 0.5, "-": 2 };

interface ChartKeys {
  onKeyDown(event: KeyboardEvent): void;
  onBlur(event: FocusEvent): void;
}

/** Handles a chart's keys: arrows move the cursor of all charts, `+` and `-` zoom at the cursor, Escape shows all again. */
export function useChartKeys(plot: RefObject<uPlot | null>, drawn: RefObject<Drawn>): ChartKeys {
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
