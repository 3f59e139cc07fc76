import { BuildRefused, toFailure } from "../detection/failures.ts";
import { createFairPlaces, type PlaceLimits } from "../kit/fair-places.ts";
import type { Builder, PlanOutcome } from "../ports/builder.ts";
import type { Failure } from "../ports/failure.ts";

export interface PlanLimits extends PlaceLimits {
  /** How long a plan waits for a slot before it is refused. */
  readonly waitMs: number;
}

// Limited because each plan unpacks its source. The wait plus the longest plan is shorter than a request waits for an outcome.
const standard: PlanLimits = { all: 4, perOwner: 2, waitingPerOwner: 16, waitMs: 60_000 };

export interface LimitedPlans {
  readonly isShort: () => Promise<boolean>;
  readonly limits?: PlanLimits;
}

/** Limits a builder's concurrent plans: one per project and a part of the slots per organization. Refuses plans while the disk is short of space. */
export function limitPlans(
  { plan }: Pick<Builder, "plan">,
  { isShort, limits = standard }: LimitedPlans,
): Builder["plan"] {
  const places = createFairPlaces(limits);
  return async (request) => {
    const late = AbortSignal.timeout(limits.waitMs);
    const place = { owner: request.org_id, key: request.project_id };
    const leave = await places.take(place, AbortSignal.any([request.signal, late])).catch(() => null);
    if (request.signal.aborted) return end(leave, { outcome: "cancelled" });
    if (leave === null) return { outcome: "refused", failure: toFailure(noPlace(), [], (text) => text) };
    try {
      return (await isShort()) ? { outcome: "refused", failure: storageFull } : await plan(request);
    } finally {
      leave();
    }
  };
}

function end(leave: (() => void) | null, outcome: PlanOutcome): PlanOutcome {
  leave?.();
  return outcome;
}

const noPlace = () =>
  new BuildRefused("build_timeout", {
    stage: "receive",
    summary: "Too many plans are running.",
    hint: "Try again in a minute. A project may run one plan at a time, an organization two.",
  });

const storageFull: Failure = {
  stage: "receive",
  code: "storage_full",
  summary: "The platform's disk has no room left for a build.",
  hint: "The platform's operator must free disk space.",
  log_tail: [],
};
