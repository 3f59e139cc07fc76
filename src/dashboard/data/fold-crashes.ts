/** Crashes at one point of a chart. */
export interface Crashes {
  /** Seconds since 1970. */
  readonly at: number;
  readonly count: number;
  /** How many of them ended because they used too much memory. */
  readonly outOfMemory: number;
}

/** Crashes that one mark stands for. Places are in pixels from the left. */
export interface CrashMark extends Omit<Crashes, "at"> {
  readonly from: number;
  readonly to: number;
}

/** Folds crashes whose marks would touch into one mark, from left to right. Those outside the chart are left out. */
export function foldCrashes(
  crashes: readonly Crashes[],
  placeOf: (crashes: Crashes) => number,
  { chart, mark }: { readonly chart: number; readonly mark: number },
): readonly CrashMark[] {
  const marks: CrashMark[] = [];
  for (const each of crashes.toSorted((a, b) => a.at - b.at)) {
    const place = placeOf(each);
    if (place < 0 || place > chart) continue;
    const last = marks.at(-1);
    if (last === undefined || place - last.to >= mark) {
      marks.push({ from: place, to: place, count: each.count, outOfMemory: each.outOfMemory });
      continue;
    }
    const count = last.count + each.count;
    marks[marks.length - 1] = { ...last, to: place, count, outOfMemory: last.outOfMemory + each.outOfMemory };
  }
  return marks;
}

/** `1 crash`; `12 crashes, 3 of them out of memory`. */
export function crashText({ count, outOfMemory }: Omit<Crashes, "at">): string {
  const crashes = count === 1 ? "1 crash" : `${count} crashes`;
  if (outOfMemory === 0) return crashes;
  return outOfMemory === count ? `${crashes}, out of memory` : `${crashes}, ${outOfMemory} of them out of memory`;
}
