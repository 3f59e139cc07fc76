import { activeDeployments, calledDeployment, type RunEnd, type StartedRun } from "../../features/cron/cron.ts";
import { limits } from "../../contract/limits.ts";
import { redactor } from "../../kit/redact.ts";
import type { InstanceAddress } from "../../ports/runtime.ts";
import { readyTargets } from "../edge-sync.ts";
import { secretsOf, workloadOf } from "../workload.ts";
import type { World } from "../world.ts";
import { callCron, type CronAnswer } from "./cron-call.ts";

export interface CronCaller {
  /**
   * Looks up where the projects' applications run, so that nothing but the call itself lies between the mark that a run is
   * called and its delivery: whoever dies in between leaves a run of unknown outcome.
   */
  prepare(projectIds: readonly string[]): Promise<void>;
  /** Turns a started run into its end. Never throws. */
  call(run: StartedRun, signal: AbortSignal): Promise<RunEnd>;
}

// Many jobs are due in the same second, and the answer to where an application runs is the same for all of its jobs.
const targetsKeptMs = 1000;
const keptDeployments = 1000;

/** Makes a caller of the ready replicas of active deployments. */
export function createCronCaller(world: World): CronCaller {
  const targets = new Map<string, readonly InstanceAddress[]>();
  const known = new Set<string>();
  const redactors = new Map<string, Promise<(text: string) => string>>();
  let lookedAt = -Infinity;

  async function lookUp(projectIds: readonly string[]): Promise<void> {
    const deployments = await activeDeployments(world.db, projectIds);
    await Promise.all(
      deployments.map(async ({ id, replicas, ready }) => {
        // One application's trouble is no reason to keep the others waiting.
        const instances = await world.ports.runtime.observe(id).catch((error: unknown) => {
          world.log.error({ err: error, deployment: id }, "where an application runs could not be seen");
          return [];
        });
        targets.set(id, readyTargets(instances, new Map(ready), replicas));
      }),
    );
    for (const id of projectIds) known.add(id);
  }

  function redactorFor(run: StartedRun): Promise<(text: string) => string> {
    const kept = redactors.get(run.deployment_id);
    if (kept !== undefined) return kept;
    const made = redactorOf(world, run);
    redactors.set(run.deployment_id, made);
    made.catch(() => redactors.delete(run.deployment_id));
    if (redactors.size > keptDeployments) redactors.delete(redactors.keys().next().value as string);
    return made;
  }

  async function perform(run: StartedRun, signal: AbortSignal): Promise<CronAnswer> {
    const { deployment_id, path } = run;
    if (!targets.has(deployment_id)) await lookUp([run.project_id]);
    const found = targets.get(deployment_id) ?? [];
    const { timeoutMs } = world.settings.cron;
    return callCron({ targets: shuffled(found), path, headers: headersOf(world, run), timeoutMs, signal });
  }

  async function textOf(run: StartedRun, excerpt: Buffer): Promise<string | null> {
    if (excerpt.length === 0) return null;
    const redact = await redactorFor(run);
    // A column of text takes every character but NUL.
    const bytes = Buffer.from(redact(excerpt.toString("utf8")).replaceAll("\0", "\uFFFD"));
    // As a stream, so that a character cut in two at the end is left out.
    return new TextDecoder().decode(bytes.subarray(0, limits.cron_response_bytes), { stream: true });
  }

  return {
    async prepare(projectIds) {
      if (performance.now() - lookedAt > targetsKeptMs) {
        lookedAt = performance.now();
        targets.clear();
        known.clear();
      }
      const unknown = projectIds.filter((id) => !known.has(id));
      if (unknown.length > 0) await lookUp(unknown);
    },
    async call(run, signal) {
      const from = performance.now();
      const end = (answer: Pick<RunEnd, "status" | "reason" | "http_status" | "response_excerpt">): RunEnd => {
        return { ...answer, id: run.id, duration_ms: Math.round(performance.now() - from) };
      };
      try {
        const { status, reason, http_status, excerpt } = await perform(run, signal);
        const done = end({ status, reason, http_status, response_excerpt: null });
        return { ...done, response_excerpt: await textOf(run, excerpt) };
      } catch (error) {
        world.log.error({ err: error, run: run.id }, "a cron run failed for a reason of the platform's own");
        return end({ status: "unknown", reason: "interrupted", http_status: null, response_excerpt: null });
      }
    },
  };
}

function headersOf({ vault }: World, run: StartedRun): Record<string, string> {
  const secret = vault.open(run.project_id, "cron_secret", run.sealed_cron_secret);
  return {
    host: run.hostname,
    "user-agent": "berth-cron/1.0",
    accept: "*/*",
    "x-cron-schedule": run.schedule,
    "x-cron-execution-id": run.id,
    "x-cron-scheduled-at": run.scheduled_at,
    authorization: `Bearer ${secret}`,
  };
}

async function redactorOf(world: World, run: StartedRun): Promise<(text: string) => string> {
  const deployment = await calledDeployment(world.db, run.org_id, run.deployment_id);
  if (deployment === undefined) throw new Error("the deployment of a cron run is gone");
  return redactor(secretsOf(await workloadOf(world, deployment)));
}

function shuffled<T>(items: readonly T[]): T[] {
  const start = Math.floor(Math.random() * items.length);
  return [...items.slice(start), ...items.slice(0, start)];
}
