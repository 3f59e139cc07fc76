import { workloadSource, web } from "../../features/deployments/deployments.ts";
import { endRun, mayGoOn, takeRun, type RunEnd, type TakenRun } from "../../features/runs/runs.ts";
import { linkSignals } from "../../kit/link-signals.ts";
import { createLineSplitter } from "../../kit/log-lines.ts";
import type { OneOffResult } from "../../ports/runtime.ts";
import { releaseDeadLeases, type Lease } from "../../store/leases.ts";
import { createBuildLog } from "../build-log.ts";
import type { Task } from "../driver.ts";
import { createLeasedWork } from "../leased-work.ts";
import type { Platform } from "../platform.ts";
import { redactorOf, workloadOf } from "../workload.ts";

const concurrent = 8;
const pollEveryMs = 300;

/** Runs one-off commands, each once: one whose control plane died is closed, never begun again. */
export function runsTask(platform: Platform, wake: () => void): Task {
  const { db, log, owner } = platform;
  const work = createLeasedWork<TakenRun>(db, log, {
    ...{ table: "run", owner, limit: concurrent },
    take: (underWay) => takeRun(db, owner, underWay),
    work: (run, lease, signal) => perform(platform, run, { lease, signal }),
    broken: (_, lease) => endRun(db, lease, "interrupted", null),
  });
  return {
    name: "runs",
    periodMs: 2000,
    topics: ["runs"],
    async run(signal) {
      await releaseDeadLeases(db, "run");
      return { detail: `${await work.fill(signal, wake)} under way` };
    },
    settle: () => work.settle(),
  };
}

interface Held {
  readonly lease: Lease;
  readonly signal: AbortSignal;
}

async function perform(platform: Platform, run: TakenRun, { lease, signal }: Held): Promise<void> {
  if (run.abandoned) return endRun(platform.db, lease, "interrupted", null);
  const source = await workloadSource(platform.db, run.org_id, run.deployment_id);
  const workload = await workloadOf(platform, source, web);
  const log = createBuildLog(platform, run.id, redactorOf(workload));
  const lines = createLineSplitter(log.line);
  const watch = watchCancel(platform, run, signal);
  const timeoutMs = run.timeout_seconds * 1000;
  try {
    const result = await platform.ports.runtime.runOnce(workload, {
      ...{ command: run.command, timeoutMs, silenceMs: timeoutMs, signal: watch.signal },
      onOutput: lines.push,
    });
    lines.end();
    await log.flush();
    const { status, exitCode } = endOf(result, signal.aborted);
    await endRun(platform.db, lease, status, exitCode);
  } finally {
    watch.end();
  }
}

/** Aborts when the run is cancelled, or its project is deleted or suspended. */
function watchCancel({ db }: Platform, { id }: TakenRun, signal: AbortSignal) {
  const cancel = linkSignals(signal);
  const look = async () => {
    if (!(await mayGoOn(db, id).catch(() => true))) cancel.abort(new Error("the run was cancelled"));
  };
  void look();
  const timer = setInterval(() => void look(), pollEveryMs);
  return {
    signal: cancel.signal,
    end() {
      clearInterval(timer);
      cancel.release();
    },
  };
}

function endOf(result: OneOffResult, stopping: boolean): { readonly status: RunEnd; readonly exitCode: number | null } {
  switch (result.outcome) {
    case "exited":
      return { status: result.code === 0 ? "succeeded" : "failed", exitCode: result.code };
    case "timed_out":
    case "silent":
      return { status: "timed_out", exitCode: null };
    case "cancelled":
      return { status: stopping ? "interrupted" : "cancelled", exitCode: null };
  }
}
