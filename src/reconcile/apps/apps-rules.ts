import { deploymentStates, type DeploymentStatus } from "../../contract/states.ts";
import type { ReplicaRow } from "../../features/deployments/deployments.ts";
import type { Instance } from "../../ports/runtime.ts";

/** What ought to happen to a workload, by its row. */
export type Wanted = "serve" | "drain" | "stop" | "leave";

export interface Standing {
  readonly status: string;
  readonly deleted_at: string | null;
  readonly suspended_at: string | null;
}

/**
 * An active deployment serves; a retired one, and one whose project was deleted or suspended, drains; one on its way belongs to
 * the releases task; the rest stops.
 */
export function wanted(row: Standing | undefined): Wanted {
  if (row === undefined) return "stop";
  switch (row.status) {
    case "active":
      return row.deleted_at === null && row.suspended_at === null ? "serve" : "drain";
    case "retired":
      return "drain";
    case "pending":
    case "starting":
      return "leave";
    default:
      return "stop";
  }
}

/** Whether nothing can make the deployment run again, so that nothing of its instances has to be remembered. */
export function isForGood(row: Standing | undefined): boolean {
  return row === undefined || deploymentStates[row.status as DeploymentStatus].length === 0;
}

export interface Crash {
  readonly ordinal: number;
  readonly attempt: number;
  readonly restarts: number;
  readonly pauseMs: number;
  readonly exit_code: number | null;
  readonly out_of_memory: boolean;
}

const firstPauseMs = 1000;
const longestPauseMs = 60_000;
// Who ran this long is not in a crash loop.
const steadyMs = 60_000;

/** A crash that is not known yet: the pause before the next start doubles from 1 s to 60 s, and begins anew after a steady minute. */
export function newCrash(instance: Instance, known: ReplicaRow | undefined): Crash | undefined {
  if (instance.state !== "exited" || (known?.crashed_attempt ?? 0) >= instance.attempt) return undefined;
  const ranMs = (instance.exit?.at.getTime() ?? 0) - instance.started_at.getTime();
  const restarts = ranMs >= steadyMs ? 1 : (known?.restarts ?? 0) + 1;
  return {
    ordinal: instance.ordinal,
    attempt: instance.attempt,
    restarts,
    pauseMs: Math.min(firstPauseMs * 2 ** (restarts - 1), longestPauseMs),
    exit_code: instance.exit?.code ?? null,
    out_of_memory: instance.exit?.out_of_memory ?? false,
  };
}

/** How long until an exited replica may start again; 0 or less means now. */
export function msUntilStart(known: ReplicaRow | undefined, now: Date): number {
  const next = known?.next_start_at ?? null;
  return next === null ? 0 : Date.parse(next) - now.getTime();
}
