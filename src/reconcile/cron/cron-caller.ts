import { setTimeout as sleep } from "node:timers/promises";
import { limits } from "../../contract/limits.ts";
import { activeDeployments, type RunEnd, type StartedRun } from "../../features/cron/cron.ts";
import { requestCommand, runById } from "../../features/runs/runs.ts";
import type { Redact } from "../../kit/redact.ts";
import { until } from "../../kit/until.ts";
import type { InstanceAddress } from "../../ports/runtime.ts";
import type { Platform } from "../platform.ts";
import { createRedactors } from "../redactors.ts";
import { callCron } from "./cron-call.ts";

export type CronCaller = ReturnType<typeof createCronCaller>;

const pollMs = 1000;

/** Creates a caller for the ready replicas of active deployments, which also runs the jobs that are commands. */
export function createCronCaller(platform: Platform) {
  const targets = createCronTargets(platform);
  const redactors = createRedactors(platform);

  // After a start of the platform, the run that was missed last is due before the applications are up.
  async function readyTargets(run: StartedRun, signal: AbortSignal): Promise<readonly InstanceAddress[]> {
    const find = async () => {
      await targets.prepare([run.project_id]);
      const found = targets.of(run.deployment_id);
      return found.length > 0 ? found : undefined;
    };
    const timeoutMs = platform.settings.cron.readyWaitMs;
    return (await until(find, { timeoutMs, firstMs: pollMs, atMostMs: pollMs, signal })) ?? [];
  }

  async function perform(run: StartedRun, signal: AbortSignal): Promise<{ outcome: Outcome; excerpt: Buffer }> {
    if (run.command !== null) return runCommand(platform, { ...run, command: run.command }, signal);
    const found = await readyTargets(run, signal);
    const { timeoutMs } = platform.settings.cron;
    const headers = headersOf(platform, run);
    const answer = await callCron({ targets: rotated(found), path: run.path, headers, timeoutMs, signal });
    const { excerpt, ...outcome } = answer;
    return { outcome: { ...outcome, response_excerpt: null }, excerpt };
  }

  return {
    /** Looks up where applications run, so that only the call itself lies between marking a run as called and delivering it. */
    prepare: (projectIds: readonly string[]) => targets.prepare(projectIds),
    /** Calls the application for a started run and returns how it ended. Never rejects. */
    async call(run: StartedRun, signal: AbortSignal) {
      const from = performance.now();
      const end = (outcome: Outcome): RunEnd => {
        return { ...outcome, id: run.id, duration_ms: Math.round(performance.now() - from) };
      };
      try {
        const { outcome, excerpt } = await perform(run, signal);
        const ended = end(outcome);
        if (excerpt.length === 0) return ended;
        return { ...ended, response_excerpt: keptText(excerpt, await redactors({ ...run, id: run.deployment_id })) };
      } catch (error) {
        platform.log.error({ err: error, run: run.id }, "a cron run failed with an internal error of the platform");
        return end({ status: "unknown", reason: "interrupted", http_status: null, response_excerpt: null });
      }
    },
  };
}

function headersOf({ vault, appUrl }: Platform, run: StartedRun): Record<string, string> {
  const secret = vault.open(run.project_id, "cron_secret", run.sealed_cron_secret);
  return {
    host: run.hostname,
    // As the edge sends it: otherwise an application that redirects plain requests to HTTPS would redirect the call instead of doing the job.
    "x-forwarded-proto": new URL(appUrl(run.hostname)).protocol.slice(0, -1),
    "user-agent": "berth-cron/1.0",
    accept: "*/*",
    "x-cron-schedule": run.schedule,
    "x-cron-execution-id": run.id,
    "x-cron-scheduled-at": run.scheduled_at,
    authorization: `Bearer ${secret}`,
  };
}

function keptText(excerpt: Buffer, redact: Redact): string {
  // A PostgreSQL text column accepts every character but NUL.
  const bytes = Buffer.from(redact(excerpt.toString("utf8")).replaceAll("\0", "\uFFFD"));
  // `stream` omits a character that is cut off at the end.
  return new TextDecoder().decode(bytes.subarray(0, limits.cron_response_bytes), { stream: true });
}

/** Rotates the items to a random start, so that all replicas get their share. */
function rotated<T>(items: readonly T[]): T[] {
  const start = Math.floor(Math.random() * items.length);
  return [...items.slice(start), ...items.slice(0, start)];
}

const keptMs = 1000;

/** Looks up the addresses of projects' applications, cached for a second because many jobs are due at the same time. */
function createCronTargets(platform: Platform) {
  const targets = new Map<string, readonly InstanceAddress[]>();
  const known = new Set<string>();
  let forgottenAt = -Infinity;

  async function lookUp(projectIds: readonly string[]): Promise<void> {
    const deployments = await activeDeployments(platform.db, projectIds);
    for (const { id, targets: found } of deployments) targets.set(id, found);
    for (const id of projectIds) known.add(id);
  }

  return {
    /** Looks up those projects that are not cached, in one query. */
    async prepare(projectIds: readonly string[]) {
      if (performance.now() - forgottenAt > keptMs) {
        forgottenAt = performance.now();
        targets.clear();
        known.clear();
      }
      const unknown = projectIds.filter((id) => !known.has(id));
      if (unknown.length > 0) await lookUp(unknown);
    },
    /** Returns the ready replicas of a deployment, as of the last look-up; none if it no longer serves. */
    of: (deploymentId: string) => targets.get(deploymentId) ?? [],
  };
}

const commandPollMs = 500;

type EndedRun = NonNullable<Awaited<ReturnType<typeof runById>>>;

/** Runs a job's command as a one-off command with the id of the cron run, once, and returns how it ended. */
async function runCommand(
  platform: Platform,
  { id, org_id, project_id, deployment_id, deployment, name, command }: StartedRun & { readonly command: string },
  signal: AbortSignal,
): Promise<{ outcome: Outcome; excerpt: Buffer }> {
  const { db, wakeups } = platform;
  const owner = { org_id, project_id, deployment_id, deployment };
  const timeout_seconds = limits.cron_command_seconds;
  const requested_by = `cron job ${name}`;
  await requestCommand(db, wakeups, { ...owner, id, command, timeout_seconds, requested_by });
  for (;;) {
    const run = await runById(db, id);
    // Purged with its project.
    if (run === undefined) return { outcome: ends.interrupted, excerpt: Buffer.alloc(0) };
    if (run.finished_at !== null) return { outcome: outcomeOf(run), excerpt: await outputOf(platform, id) };
    await sleep(commandPollMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) return { outcome: ends.interrupted, excerpt: Buffer.alloc(0) };
  }
}

type Outcome = Omit<RunEnd, "id" | "duration_ms">;

const plain = { http_status: null, response_excerpt: null } as const;
const ends = {
  succeeded: { ...plain, status: "succeeded", reason: null },
  failed: { ...plain, status: "failed", reason: null },
  timed_out: { ...plain, status: "timeout", reason: null },
  cancelled: { ...plain, status: "failed", reason: "cancelled" },
  interrupted: { ...plain, status: "unknown", reason: "interrupted" },
} as const;

function outcomeOf({ status, exit_code }: EndedRun): Outcome {
  return { ...(ends[status as keyof typeof ends] ?? ends.interrupted), exit_code };
}

async function outputOf({ ports }: Platform, id: string): Promise<Buffer> {
  // Only the process with the logs can read them; elsewhere `berth runs` shows the output.
  const read = await ports.logStore.readBuild(id, 0, limits.cron_response_bytes).catch(() => ({ text: "" }));
  return Buffer.from(read.text);
}
