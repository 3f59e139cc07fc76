import { setTimeout as sleep } from "node:timers/promises";
import { limits } from "../../contract/limits.ts";
import type { RunEnd, StartedRun } from "../../features/cron/cron.ts";
import { requestCommand, runById } from "../../features/runs/runs.ts";
import type { Platform } from "../platform.ts";

const pollMs = 500;

type EndedRun = NonNullable<Awaited<ReturnType<typeof runById>>>;

/** Runs a job's command as a one-off command with the id of the cron run, once, and returns how it ended. */
export async function runCommand(
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
    await sleep(pollMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) return { outcome: ends.interrupted, excerpt: Buffer.alloc(0) };
  }
}

export type Outcome = Omit<RunEnd, "id" | "duration_ms">;

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
