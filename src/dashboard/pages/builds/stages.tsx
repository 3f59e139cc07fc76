import { Check, LoaderCircle, X } from "lucide-react";
import { useMemo } from "react";
import type { Answer } from "../../../contract/client.ts";
import { duration } from "../../data/format.ts";
import type { LogLine } from "../../ui/log-row.tsx";
import { marksOf, stageDurations, stages, type Mark } from "./marks-of.ts";

type Build = Answer<"builds.get">;

interface StagesProps {
  readonly build: Build;
  readonly log: string;
  readonly lines: readonly LogLine[];
}

/** Shows which stages a push has passed, and how long each took. */
export function Stages({ build, log, lines }: StagesProps) {
  const marks = marksOf(build, log);
  const durations = useMemo(() => stageDurations(build, lines), [build, lines]);
  return (
    <ol aria-label="Stages" className="flex flex-wrap items-center gap-1 text-sm max-sm:gap-x-4">
      {stages.map((stage, index) => (
        <li key={stage} className="flex items-start gap-1.5 whitespace-nowrap">
          {index > 0 && <span aria-hidden className="mx-1 mt-2.5 h-px w-7 bg-line max-sm:hidden" />}
          <StageIcon mark={marks[index] ?? "open"} />
          {/* The durations arrive later, with the log, so reserve their space. */}
          <span className="flex min-w-14 flex-col">
            <span className={looks[marks[index] ?? "open"]}>{stage}</span>
            <span className="h-4 text-xs text-faint">
              {marks[index] === "done" && (durations[index] ?? 0) >= leastMs && duration(durations[index] ?? 0)}
            </span>
          </span>
          <span className="sr-only">{spoken[marks[index] ?? "open"]}</span>
        </li>
      ))}
    </ol>
  );
}

// A log's times are exact to the second.
const leastMs = 1000;
const looks: Record<Mark, string> = {
  done: "text-muted",
  now: "font-medium",
  failed: "font-medium text-bad",
  open: "text-faint",
};
const spoken: Record<Mark, string> = { done: "done", now: "under way", failed: "failed", open: "not yet" };

function StageIcon({ mark }: { readonly mark: Mark }) {
  if (mark === "done") return <Check aria-hidden size={14} className="mt-[3px] text-ok" />;
  if (mark === "failed") return <X aria-hidden size={14} className="mt-[3px] text-bad" />;
  if (mark === "now") return <LoaderCircle aria-hidden size={14} className="mt-[3px] animate-spin text-busy" />;
  return <span aria-hidden className="mx-[3px] mt-1.5 size-2 rounded-full border border-strong" />;
}
