/** One line of the bench: two measurements of the same run. */
export interface BenchRow {
  readonly name: string;
  readonly against: string;
  readonly ours: number;
  readonly theirs: number;
  readonly unit:
    | "ms"
    | "µs"
    | "requests/s"
    | "instructions"
    | "MB"
    | "kB"
    | "frames/s"
    | "count"
    | "s a minute"
    | "a second"
    | "a minute";
  /** Berth's value divided by the other. */
  readonly ratio: number;
  /** The maximum (times) or minimum (rates) of the ratio; null: no goal. */
  readonly goal: number | null;
  /** How both values divide into steps. */
  readonly steps?: readonly BenchStep[];
}

/** A part of a measurement, in the row's unit; null if that side has no such part. */
export interface BenchStep {
  readonly name: string;
  readonly ours: number | null;
  readonly theirs: number | null;
}

/** Compares rates; higher is better. */
export function rateRow(
  name: string,
  against: string,
  rates: { ours: number; theirs: number; goal: number | null },
): BenchRow {
  return {
    name,
    against,
    ours: rates.ours,
    theirs: rates.theirs,
    unit: "requests/s",
    ratio: rates.ours / rates.theirs,
    goal: rates.goal,
  };
}

/** Compares times; lower is better. */
export function timeRow(
  name: string,
  against: string,
  times: { ours: number; theirs: number; goal: number | null },
): BenchRow {
  return {
    name,
    against,
    ours: times.ours,
    theirs: times.theirs,
    unit: "ms",
    ratio: times.ours / times.theirs,
    goal: times.goal,
  };
}

/** Compares the CPU time of one request; lower is better. Other load on the machine hardly changes it. */
export function costRow(name: string, against: string, seconds: { ours: number; theirs: number }): BenchRow {
  const [ours, theirs] = [seconds.ours * 1e6, seconds.theirs * 1e6];
  return { name, against, ours, theirs, unit: "µs", ratio: ours / theirs, goal: null };
}

/** Compares executed instructions; lower is better. */
export function instructionsRow(name: string, against: string, counts: { ours: number; theirs: number }): BenchRow {
  return { name, against, ...counts, unit: "instructions", ratio: counts.ours / counts.theirs, goal: null };
}

/** Compares memory; lower is better. */
export function memoryRow(
  name: string,
  against: string,
  megabytes: { ours: number; theirs: number; goal: number | null },
): BenchRow {
  return {
    name,
    against,
    ours: megabytes.ours,
    theirs: megabytes.theirs,
    unit: "MB",
    ratio: megabytes.ours / megabytes.theirs,
    goal: megabytes.goal,
  };
}

/** Compares the use of something; lower is better. */
export function usageRow(
  name: string,
  against: string,
  used: { ours: number; theirs: number; unit: "s a minute" | "a second" | "a minute"; goal: number | null },
): BenchRow {
  return { name, against, ...used, ratio: used.ours / used.theirs };
}

/** Compares a value with an absolute goal: frames a second at least, everything else at most. */
export function goalRow(
  name: string,
  measured: number,
  of: { goal: number; unit: "ms" | "kB" | "frames/s" },
): BenchRow {
  return {
    name,
    against: "the goal",
    ours: measured,
    theirs: of.goal,
    unit: of.unit,
    ratio: measured / of.goal,
    goal: 1,
  };
}

/** Counts something that must not happen at all. */
export function countRow(name: string, against: string, count: number): BenchRow {
  return { name, against, ours: count, theirs: 0, unit: "count", ratio: count, goal: 0 };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] as number;
}

/** Formats a row as a line of text, with a line below for each of its steps. */
export function formatRow(row: BenchRow): string {
  if (row.unit === "count") return `${row.ours}  ${row.name}, of ${row.against} (goal ${row.goal})`;
  const sign = row.unit === "requests/s" || row.unit === "frames/s" ? "≥" : "≤";
  const goal = row.goal === null ? "" : ` (goal ${sign} ${row.goal})`;
  const number = (value: number) => (value >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(1));
  const part = (value: number | null) => (value === null ? "–" : number(value)).padStart(9);
  const steps = (row.steps ?? []).map(
    (step) => `\n    ${part(step.ours)} ${part(step.theirs)} ${row.unit}  ${step.name}`,
  );
  const line = `${row.ratio.toFixed(2)} ×  ${row.name}: ${number(row.ours)} ${row.unit} against ${number(row.theirs)} of ${row.against}${goal}`;
  return `${line}${steps.join("")}`;
}
