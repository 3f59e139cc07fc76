/** One line of the bench: what was measured against what in the same run. */
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
  /** Ours divided by theirs. */
  readonly ratio: number;
  /** What the ratio ought to be at most (times) or at least (rates); null: only shown. */
  readonly goal: number | null;
  /** Where the time of both goes. */
  readonly steps?: readonly BenchStep[];
}

/** A part of what was measured, in the row's unit; null where that side has no such part. */
export interface BenchStep {
  readonly name: string;
  readonly ours: number | null;
  readonly theirs: number | null;
}

/** The rate of both, higher is better. */
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

/** The time of both, lower is better. */
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

/** The processor time that one request takes of both, lower is better; other load on the machine hardly changes it. */
export function costRow(name: string, against: string, seconds: { ours: number; theirs: number }): BenchRow {
  const [ours, theirs] = [seconds.ours * 1e6, seconds.theirs * 1e6];
  return { name, against, ours, theirs, unit: "µs", ratio: ours / theirs, goal: null };
}

/** What a program executes, lower is better. */
export function instructionsRow(name: string, against: string, counts: { ours: number; theirs: number }): BenchRow {
  return { name, against, ...counts, unit: "instructions", ratio: counts.ours / counts.theirs, goal: null };
}

/** The memory of both, lower is better. */
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

/** What both use of something, lower is better. */
export function usageRow(
  name: string,
  against: string,
  used: { ours: number; theirs: number; unit: "s a minute" | "a second" | "a minute"; goal: number | null },
): BenchRow {
  return { name, against, ...used, ratio: used.ours / used.theirs };
}

/** What has a goal in numbers of its own; frames a second at least, everything else at most. */
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

/** What must not happen at all. */
export function countRow(name: string, against: string, count: number): BenchRow {
  return { name, against, ours: count, theirs: 0, unit: "count", ratio: count, goal: 0 };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] as number;
}

/** A row as a line of text, with a line below for each of its steps: ours, theirs. */
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
