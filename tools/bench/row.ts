/** One line of the bench: two measurements of the same run. */
export interface BenchRow {
  readonly name: string;
  readonly against: string;
  readonly ours: number;
  readonly theirs: number;
  readonly unit: Unit;
  /** Berth's value divided by the other. */
  readonly ratio: number;
  /** The maximum (times) or minimum (rates) of the ratio; null: no goal. */
  readonly goal: number | null;
  /** How both values divide into steps. */
  readonly steps?: readonly BenchStep[];
}

type Unit = "frames/s" | "s a minute" | "a second" | "ms" | "µs" | "requests/s" | "MB" | "kB" | "count";

/** A part of a measurement, in the row's unit; null if that side has no such part. */
export interface BenchStep {
  readonly name: string;
  readonly ours: number | null;
  readonly theirs: number | null;
}

interface Compared {
  readonly ours: number;
  readonly theirs: number;
  readonly goal?: number | null;
}

/** Makes a row of a unit. Of rates, higher is better; of everything else, lower. */
export const comparing =
  (unit: Unit) =>
  (name: string, against: string, { ours, theirs, goal = null }: Compared): BenchRow => ({
    ...{ name, against, ours, theirs, unit, ratio: ours / theirs, goal },
  });

export const rateRow = comparing("requests/s");
export const timeRow = comparing("ms");

/** Compares the CPU time of one request. Other load on the machine hardly changes it. */
export function costRow(name: string, against: string, seconds: { ours: number; theirs: number }): BenchRow {
  return comparing("µs")(name, against, { ours: seconds.ours * 1e6, theirs: seconds.theirs * 1e6 });
}

/** Compares a value with an absolute goal: frames a second at least, everything else at most. */
export function goalRow(name: string, measured: number, of: { readonly goal: number; readonly unit: Unit }): BenchRow {
  return comparing(of.unit)(name, "the goal", { ours: measured, theirs: of.goal, goal: 1 });
}

/** Counts something that must not happen at all. */
export function countRow(name: string, against: string, count: number): BenchRow {
  return { name, against, ours: count, theirs: 0, unit: "count", ratio: count, goal: 0 };
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number;
}

/** What both sides measured, round by round. */
export interface Rounds<T> {
  readonly ours: readonly T[];
  readonly theirs: readonly T[];
}

/** Measures both sides in turns. The first `uncounted` rounds only warm up. */
export async function inTurns<T>(
  rounds: number,
  sides: Record<keyof Rounds<T>, (round: number) => Promise<T>>,
  uncounted = 0,
): Promise<Rounds<T>> {
  const [ours, theirs]: [T[], T[]] = [[], []];
  for (let round = 0; round < uncounted + rounds; round += 1) {
    theirs.push(await sides.theirs(round));
    ours.push(await sides.ours(round));
  }
  return { ours: ours.slice(uncounted), theirs: theirs.slice(uncounted) };
}

/** Returns the medians of both sides, of what `of` reads from each round. */
export function medians<T>({ ours, theirs }: Rounds<T>, of: (round: T) => number = Number) {
  return { ours: median(ours.map(of)), theirs: median(theirs.map(of)) };
}

/** Returns how long the work takes, in milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAtMs = performance.now();
  await work();
  return performance.now() - startedAtMs;
}

/** Formats a row as a line of text, with a line below for each of its steps. */
export function formatRow(row: BenchRow): string {
  if (row.unit === "count") return `${row.ours}  ${row.name}, of ${row.against} (goal ${row.goal})`;
  const sign = row.unit === "requests/s" || row.unit === "frames/s" ? "≥" : "≤";
  const goal = row.goal === null ? "" : ` (goal ${sign} ${row.goal})`;
  const number = (value: number) => (value >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(1));
  const part = (value: number | null) => (value === null ? "–" : number(value)).padStart(9);
  const stepOf = (step: BenchStep) => `\n    ${part(step.ours)} ${part(step.theirs)} ${row.unit}  ${step.name}`;
  const steps = (row.steps ?? []).map(stepOf);
  const line = `${row.ratio.toFixed(2)} ×  ${row.name}: ${number(row.ours)} ${row.unit} against ${number(row.theirs)} of ${row.against}${goal}`;
  return `${line}${steps.join("")}`;
}

/** Returns sizes that the command line may set: `npm run bench -- edge-haproxy hosts=1,10000`. */
export function benchSizes(name: string, usual: readonly number[]): readonly number[] {
  const given = process.argv.find((argument) => argument.startsWith(`${name}=`))?.slice(name.length + 1);
  const sizes = given === undefined ? usual : given.split(",").map(Number);
  if (!sizes.every((size) => Number.isInteger(size) && size > 0))
    throw new Error(`${name} takes whole numbers above 0, not "${given}".`);
  return sizes;
}

/** Like `benchSizes`, for a single number: `npm run bench -- growth projects=200 running=20`. */
export function benchSize(name: string, usual: number): number {
  return benchSizes(name, [usual])[0] as number;
}
