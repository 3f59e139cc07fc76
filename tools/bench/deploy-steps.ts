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

/** Milliseconds by step. By hand there is nothing to publish. */
export type StepTimes = Partial<Record<StepName, number>>;

// The line of a push's output that ends a step.
const ends: readonly (readonly [StepName, RegExp])[] = [
  ["git, checkout, what it takes", /-----> (?:Installing|Using) /],
  ["installing", /-----> Building/],
  ["building", /-----> Starting with/],
  ["publishing", /-----> Starting \d/],
  ["starting until healthy", /-----> Live at/],
];

export interface StepClock {
  /** Hears what a push prints. */
  hear(chunk: Buffer): void;
  /** Ends a step now. */
  end(name: StepName): void;
  /** What was ended, each since the one before. */
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

/** From the beginning to the first answer. */
export const total = (times: StepTimes): number => Object.values(times).reduce((sum, each) => sum + each, 0);

/** The medians of several rounds, step by step. */
export function stepRows(ours: readonly StepTimes[], theirs: readonly StepTimes[]): BenchStep[] {
  const of = (rounds: readonly StepTimes[], name: StepName) => {
    const found = rounds.map((each) => each[name]).filter((time) => time !== undefined);
    return found.length === 0 ? null : median(found);
  };
  return names.map((name) => ({ name, ours: of(ours, name), theirs: of(theirs, name) }));
}
