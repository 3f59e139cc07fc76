import { limits } from "../../contract/limits.ts";
import type { RunEnd, StartedRun } from "../../features/cron/cron.ts";
import { createRedactors } from "../redactors.ts";
import { until } from "../../kit/until.ts";
import type { InstanceAddress } from "../../ports/runtime.ts";
import type { Redact } from "../../kit/redact.ts";
import type { Platform } from "../platform.ts";
import { callCron } from "./cron-call.ts";
import { runCommand, type Outcome } from "./run-command.ts";
import { createCronTargets } from "./cron-targets.ts";

export interface CronCaller {
  /**
   * Looks up where the projects' applications run, so that only the call itself happens between marking a run as called and delivering it:
   * if the scheduler dies in between, the run's outcome is unknown.
   */
  prepare(projectIds: readonly string[]): Promise<void>;
  /** Calls the application for a started run and returns how it ended. Never rejects. */
  call(run: StartedRun, signal: AbortSignal): Promise<RunEnd>;
}

const pollMs = 1000;

/** Creates a caller for the ready replicas of active deployments, which also runs the jobs that are commands. */
export function createCronCaller(platform: Platform): CronCaller {
  const targets = createCronTargets(platform);
  const redactors = createRedactors(platform);

  // After a start of the platform, the run that was missed last is due before the applications are up.
  async function readyTargets(run: StartedRun, signal: AbortSignal): Promise<readonly InstanceAddress[]> {
    const find = async () => {
      const found = await targets.of(run.project_id, run.deployment_id);
      if (found.length > 0) return found;
      await targets.prepare([run.project_id]);
      return undefined;
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
    prepare: (projectIds) => targets.prepare(projectIds),
    async call(run, signal) {
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
    // As the edge sends it: otherwise an application that redirects plain requests to HTTPS would redirect the call instead of doing the
    // job.
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
