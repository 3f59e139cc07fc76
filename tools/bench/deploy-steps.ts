import { median, type BenchStep } from "./row.ts";

const names = [
  "git, checkout, what it takes",
  "installing",
  "building",
  "publishing",
  "starting until healthy",
  "first answer",
] as const;
type StepName = (typeof names)[number];

/** Milliseconds by step. The manual deploy has no publishing step. */
export type StepTimes = Partial<Record<StepName, number>>;

// The line of a push's output at which a step ends.
const ends: readonly (readonly [StepName, RegExp])[] = [
  ["git, checkout, what it takes", /-----> (?:Installing|Using) /],
  ["installing", /-----> Building/],
  ["building", /-----> Starting with/],
  ["publishing", /-----> Starting \d/],
  ["starting until healthy", /-----> Live at/],
];

export interface StepClock {
  /** Reads a push's output. */
  hear(chunk: Buffer): void;
  /** Ends this step now. */
  end(name: StepName): void;
  /** Returns the duration of each ended step. */
  times(): StepTimes;
}

export function stepClock(): StepClock {
  let last = performance.now();
  let heard = "";
  const times: StepTimes = {};
  const end = (name: StepName) => {
    times[name] = performance.now() - last;
    last = performance.now();
  };
  return {
    hear(chunk) {
      heard += chunk.toString("utf8");
      for (const [name, line] of ends) if (times[name] === undefined && line.test(heard)) end(name);
    },
    end,
    times: () => times,
  };
}

/** Returns the time from the start to the first response. */
export const total = (times: StepTimes): number => Object.values(times).reduce((sum, each) => sum + each, 0);

/** Returns the medians of several rounds, step by step. */
export function stepRows(ours: readonly StepTimes[], theirs: readonly StepTimes[]): BenchStep[] {
  const of = (rounds: readonly StepTimes[], name: StepName) => {
    const found = rounds.map((each) => each[name]).filter((time) => time !== undefined);
    return found.length === 0 ? null : median(found);
  };
  return names.map((name) => ({ name, ours: of(ours, name), theirs: of(theirs, name) }));
}
