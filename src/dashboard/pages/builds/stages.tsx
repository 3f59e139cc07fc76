import { Check, LoaderCircle, X } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";

type Build = Answer<"builds.get">;
type Mark = "done" | "now" | "failed" | "open";

const stages = ["Received", "Detected", "Installing", "Building", "Release", "Health", "Live"] as const;

// The log lines with which each stage begins. The failed stage is not found this way: the failure names it.
const begins: readonly (readonly [RegExp, number])[] = [
  [/^-----> .* detected/m, 1],
  [/^-----> (?:Install|Using the installed)/m, 2],
  [/^-----> (?:Build|Running (?!the release)|Run )/m, 3],
  [/^-----> Image /m, 4],
  [/^-----> Running the release command/m, 4],
  [/^-----> Starting \d/m, 5],
  [/^-----> Live at /m, 6],
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

/** Shows which stages a push has passed. */
export function Stages({ build, log }: { readonly build: Build; readonly log: string }) {
  const marks = marksOf(build, log);
  return (
    <ol aria-label="Stages" className="flex flex-wrap items-center gap-1 text-sm max-sm:gap-x-4">
      {stages.map((stage, index) => (
        <li key={stage} className="flex items-center gap-1.5 whitespace-nowrap">
          {index > 0 && <span aria-hidden className="mx-1 h-px w-7 bg-line max-sm:hidden" />}
          <StageIcon mark={marks[index] ?? "open"} />
          <span
            className={
              marks[index] === "open"
                ? "text-faint"
                : marks[index] === "failed"
                  ? "font-medium text-bad"
                  : marks[index] === "now"
                    ? "font-medium"
                    : "text-muted"
            }
          >
            {stage}
          </span>
          <span className="sr-only">{spoken[marks[index] ?? "open"]}</span>
        </li>
      ))}
    </ol>
  );
}

const spoken: Record<Mark, string> = { done: "done", now: "under way", failed: "failed", open: "not yet" };

function marksOf(build: Build, log: string): Mark[] {
  const failure = build.failure ?? build.deployment?.failure ?? null;
  const isOver =
    failure !== null ||
    ["failed", "cancelled", "superseded"].includes(build.status) ||
    (build.deployment !== null && !["pending", "starting"].includes(build.deployment.status));
  const reached = Math.max(0, ...begins.flatMap(([pattern, stage]) => (pattern.test(log) ? [stage] : [])));
  const end = failure === null ? reached : (failedAt[failure.stage] ?? reached);
  return stages.map((_, index) => {
    if (index < end) return "done";
    if (index > end) return "open";
    if (failure !== null) return "failed";
    return isOver ? (end === stages.length - 1 ? "done" : "open") : "now";
  });
}

function StageIcon({ mark }: { readonly mark: Mark }) {
  if (mark === "done") return <Check aria-hidden size={14} className="text-ok" />;
  if (mark === "failed") return <X aria-hidden size={14} className="text-bad" />;
  if (mark === "now") return <LoaderCircle aria-hidden size={14} className="animate-spin text-busy" />;
  return <span aria-hidden className="mx-[3px] size-2 rounded-full border border-strong" />;
}
