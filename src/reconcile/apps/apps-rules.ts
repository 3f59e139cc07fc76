import { deploymentStates, type DeploymentStatus } from "../../contract/states.ts";
import type { CrashRow, ReplicaRow, WorkloadRow } from "../../features/replicas/replicas.ts";
import type { Instance, InstanceExit } from "../../ports/runtime.ts";

/** The columns that decide the desired state of a deployment's process type. */
export type DeploymentState = Pick<WorkloadRow, "status" | "deleted_at" | "suspended_at" | "sleep">;

/**
 * Returns how many replicas of a type should run: all while its deployment serves; none once it has ended, its project is deleted,
 * suspended or asleep, or another deployment is about to start the type. Undefined: the deployment is being released, and the releases task decides.
 */
export function desiredReplicas(
  row: (DeploymentState & Pick<WorkloadRow, "replicas" | "yields">) | undefined,
): number | undefined {
  if (row === undefined) return 0;
  if (row.status === "pending" || row.status === "starting") return undefined;
  const serves =
    row.status === "active" &&
    row.deleted_at === null &&
    row.suspended_at === null &&
    row.sleep !== "asleep" &&
    !row.yields;
  return serves ? row.replicas : 0;
}

/** Returns whether the deployment can never run again, so that its start numbers may be forgotten. */
export function isForGood(row: DeploymentState | undefined): boolean {
  return row === undefined || deploymentStates[row.status as DeploymentStatus].length === 0;
}

/** Returns the next replica to restart: one at a time, while all restarted ones are ready. If one does not come up, others stay as they are. */
export function replicaToRestart(
  row: Pick<WorkloadRow, "replicas" | "restart_at" | "replica_rows">,
): number | undefined {
  const { restart_at } = row;
  if (restart_at === null) return undefined;
  const wanted = row.replica_rows.filter(({ ordinal }) => ordinal < row.replicas);
  const isOld = ({ state, since }: ReplicaRow) => state === "running" && Date.parse(since) < Date.parse(restart_at);
  const isUp = (replica: ReplicaRow) => replica.state === "running" && replica.ready_attempt === replica.attempt;
  return wanted.every((replica) => isOld(replica) || isUp(replica)) ? wanted.find(isOld)?.ordinal : undefined;
}

/** The next action for a replica that should run. */
export type ReplicaAction =
  | { readonly action: "start"; readonly inMs: number }
  | { readonly action: "adopt"; readonly instance: Instance }
  | { readonly action: "crashed"; readonly instance: Instance | undefined }
  | { readonly action: "probe"; readonly instance: Instance }
  | { readonly action: "keep" }
  | { readonly action: "none" };

/** Compares a replica's row with its current or last instance, if there is one. */
export function nextAction(row: ReplicaRow | undefined, instance: Instance | undefined, now: Date): ReplicaAction {
  const isAhead = instance?.state === "running" && (row === undefined || instance.attempt > row.attempt);
  if (isAhead) return { action: "adopt", instance };
  if (row === undefined) return { action: "start", inMs: 0 };
  const own = instance?.attempt === row.attempt ? instance : undefined;
  switch (row.state) {
    case "stopped":
      return { action: "start", inMs: 0 };
    case "starting":
      if (own === undefined) return { action: "start", inMs: 0 };
      return own.state === "running" ? { action: "adopt", instance: own } : { action: "crashed", instance: own };
    case "running":
      if (own?.state !== "running") return { action: "crashed", instance: own };
      return row.ready_attempt === row.attempt ? { action: "none" } : { action: "probe", instance: own };
    case "draining":
      return own?.state === "running" ? { action: "keep" } : { action: "crashed", instance: own };
    case "exited":
      if (own?.state === "running") return { action: "adopt", instance: own };
      return { action: "start", inMs: msUntilStart(row, now) };
  }
}

function msUntilStart({ next_start_at }: ReplicaRow, now: Date): number {
  return next_start_at === null ? 0 : Math.max(0, Date.parse(next_start_at) - now.getTime());
}

export type Crash = Pick<CrashRow, "restarts" | "pauseMs" | "exit_code" | "out_of_memory">;

const firstPauseMs = 1000;
const longestPauseMs = 60_000;
// A replica that ran at least this long is not in a crash loop.
const steadyMs = 60_000;

/** Returns whether something else than the application ended it. */
export function isFaultless(exit: InstanceExit | null | undefined): boolean {
  return exit?.machine_lost === true || exit?.stopped === true;
}

/** Computes the pause before the next start: it doubles from 1 s to 60 s, is 1 s after a minute, and 0 after a loss of the machine. */
export function crashOf(row: Pick<ReplicaRow, "restarts">, instance: Instance | undefined): Crash {
  const exit = instance?.exit ?? null;
  if (isFaultless(exit)) return { restarts: row.restarts, pauseMs: 0, exit_code: null, out_of_memory: false };
  const ranMs = (exit?.at.getTime() ?? 0) - (instance?.started_at.getTime() ?? 0);
  const restarts = ranMs >= steadyMs ? 1 : row.restarts + 1;
  const pauseMs = Math.min(firstPauseMs * 2 ** (restarts - 1), longestPauseMs);
  return { restarts, pauseMs, exit_code: exit?.code ?? null, out_of_memory: exit?.out_of_memory ?? false };
}
