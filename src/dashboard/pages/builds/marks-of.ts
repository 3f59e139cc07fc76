import type { Answer } from "../../../contract/client.ts";

export type Mark = "done" | "now" | "failed" | "open";

// The log lines with which each stage begins. The failed stage is not found this way: the failure names it.
const begins: readonly (readonly [RegExp, number])[] = [
  [/^-----> .* detected$/m, 1],
  [/^-----> (?:Installing|Fetching|Creating an? (?:virtual )?environment|Compiling|Running: |Using the )/m, 2],
  // A Dockerfile's instructions begin with their position: `[2/5] RUN make`.
  [/^-----> (?:Building(?! the folder )|Collecting|Marking|Copying|Removing|\[)/m, 3],
  [/^-----> (?:Image |Running the release command)/m, 4],
  [/^-----> (?:Starting \d|Stopping )/m, 5],
  [/^-----> Live /m, 6],
];
const failedAt: Readonly<Record<string, number>> = {
  receive: 0,
  detect: 1,
  install: 2,
  build: 3,
  release: 4,
  boot: 5,
  health: 5,
  switch: 6,
};

/** Returns for each stage whether a push has passed it. */
export function marksOf(build: Answer<"builds.get">, log: string): Mark[] {
  const failure = build.failure ?? build.deployment?.failure ?? null;
  const isOver =
    failure !== null ||
    ["failed", "cancelled", "superseded"].includes(build.status) ||
    (build.deployment !== null && !["pending", "starting"].includes(build.deployment.status));
  const reached = stageReached(log);
  const end = failure === null ? reached : (failedAt[failure.stage] ?? reached);
  return stages.map((_, index) => {
    if (index < end) return "done";
    if (index > end) return "open";
    if (failure !== null) return "failed";
    return isOver ? (end === stages.length - 1 ? "done" : "open") : "now";
  });
}

export const stages = ["Received", "Detected", "Installing", "Building", "Release", "Health", "Live"] as const;

/** Returns how long each stage that is over took, in ms; undefined where the log has no times, or no line of the stage. */
export function stageDurations(
  { created_at: received }: Pick<Answer<"builds.get">, "created_at">,
  lines: readonly { readonly at: string | null; readonly text: string }[],
): readonly (number | undefined)[] {
  const startOf = (stage: number) => {
    if (stage === 0) return Date.parse(received);
    const patterns = begins.flatMap(([pattern, of]) => (of === stage ? [pattern] : []));
    return Date.parse(lines.find(({ text }) => patterns.some((pattern) => pattern.test(text)))?.at ?? "");
  };
  const starts = stages.map((_, stage) => startOf(stage));
  return starts.map((start, stage) => {
    const end = starts.find((later, index) => index > stage && !Number.isNaN(later));
    return end === undefined || Number.isNaN(start) ? undefined : Math.max(0, Math.round((end - start) / 1000) * 1000);
  });
}

/** Returns the index of the last stage whose first line is in the log. */
export function stageReached(log: string): number {
  return Math.max(0, ...begins.flatMap(([pattern, stage]) => (pattern.test(log) ? [stage] : [])));
}
