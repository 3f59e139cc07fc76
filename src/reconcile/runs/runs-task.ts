import { awaken, databaseOfDeployment } from "../../features/database/database.ts";
import { workloadSource } from "../../features/deployments/deployments.ts";
import { web } from "../../features/replicas/replicas.ts";
import * as runs from "../../features/runs/runs.ts";
import { linkSignals } from "../../kit/link-signals.ts";
import { createLineSplitter } from "../../kit/log-lines.ts";
import type { OneOffResult } from "../../ports/runtime.ts";
import { releaseDeadLeases, type Lease } from "../../store/leases.ts";
import { createBuildLog } from "../build-log.ts";
import type { Task, Platform } from "../platform.ts";
import { createLeasedWork } from "../leased-work.ts";
import { redactorOf, workloadOf } from "../workload.ts";

// A command may take a day, so those of one organization never have all slots.
const commands = { limit: 8, perOrganization: 5 };
const openTerminals = { limit: 16, perOrganization: 10 };
const pollEveryMs = 300;

/** Runs one-off commands, each once: if its control plane died, a command is closed, never started again. */
export function runsTask(platform: Platform, wake: () => void): Task {
  const { db, owner } = platform;
  const work = createLeasedWork<runs.TakenRun>(platform, {
    ...{ table: "run", ...commands },
    take: (inProgress) => runs.takeRun(db, owner, { ...inProgress, ids: [...inProgress.ids, ...terminals.underWay()] }),
    work: async (run, lease, signal) => {
      if (run.abandoned) return runs.endRun(db, lease, "interrupted", null);
      await perform(platform, run, { lease, signal });
    },
    broken: (_, lease) => runs.endRun(db, lease, "interrupted", null),
  });
  const terminals = createLeasedWork<runs.TakenRun>(platform, {
    ...{ table: "run", ...openTerminals },
    take: (inProgress) => runs.takeTerminal(db, owner, { open: platform.terminals.waiting(), inProgress }),
    work: (run, lease, signal) => performInTerminal(platform, run, { lease, signal }),
    broken: (_, lease) => runs.endRun(db, lease, "interrupted", null),
  });
  return {
    name: "runs",
    periodMs: 2000,
    topics: ["runs"],
    async run(signal) {
      await releaseDeadLeases(db, "run");
      await runs.closeUnopened(db);
      const count = (await work.fill(signal, wake)) + (await terminals.fill(signal, wake));
      await endCancelled(platform);
      return { detail: `${count} under way` };
    },
    settle: async () => void (await Promise.all([work.settle(), terminals.settle()])),
  };
}

interface Held {
  readonly session?: runs.TerminalSession;
  readonly lease: Lease;
  readonly signal: AbortSignal;
}

/** Closes terminals that wait for a run which was cancelled or not started in time. */
async function endCancelled({ db, terminals }: Platform): Promise<void> {
  for (const id of terminals.waiting()) if (!(await runs.isQueued(db, id))) terminals.take(id)?.end("cancelled", null);
}

async function performInTerminal(platform: Platform, run: runs.TakenRun, { lease, signal }: Held): Promise<void> {
  const session = platform.terminals.take(run.id);
  if (session === undefined) return runs.endRun(platform.db, lease, "cancelled", null);
  try {
    const { status, exitCode } = await perform(platform, run, { lease, signal, session });
    session.end(status, exitCode);
  } catch (cause) {
    session.end("interrupted", null);
    throw cause;
  }
}

async function perform(platform: Platform, run: runs.TakenRun, { lease, signal, session }: Held): Promise<Ended> {
  const source = await workloadSource(platform.db, run.org_id, run.deployment_id);
  await awaken(platform, await databaseOfDeployment(platform.db, source), signal);
  const workload = await workloadOf(platform, source, web);
  const log = createBuildLog(platform, run.id, redactorOf(workload));
  const lines = createLineSplitter(log.line);
  const watch = await watchObstacles(
    platform,
    run,
    session === undefined ? signal : AbortSignal.any([signal, session.signal]),
  );
  const onOutput = (chunk: Buffer) => {
    lines.push(chunk);
    return session?.write(chunk);
  };
  const timeoutMs = run.timeout_seconds * 1000;
  try {
    const result = await platform.ports.runtime.runOnce(workload, {
      ...{ timeoutMs, silenceMs: timeoutMs, signal: watch.signal, onOutput },
      command: session === undefined ? run.command : asSession(run.command),
      ...(session === undefined ? {} : { terminal: session.terminal }),
    });
    lines.end();
    const { obstacle } = watch;
    if (result.outcome === "cancelled" && obstacle !== undefined) log.line(`-----> ${obstacle}`);
    await log.flush();
    const ended = endOf(result, signal.aborted);
    await runs.endRun(platform.db, lease, ended.status, ended.exitCode);
    return ended;
  } finally {
    watch.end();
  }
}

/** Returns a signal that aborts when the run is cancelled, its token ends, or its project is deleted or suspended. */
async function watchObstacles({ db }: Platform, { id }: runs.TakenRun, signal: AbortSignal) {
  const cancel = linkSignals(signal);
  const watch = { signal: cancel.signal, obstacle: undefined as string | undefined, end: () => {} };
  const look = async () => {
    watch.obstacle ??= await runs.obstacleOf(db, id).catch(() => undefined);
    if (watch.obstacle !== undefined) cancel.abort(new Error(watch.obstacle));
  };
  await look();
  const timer = setInterval(() => void look(), pollEveryMs);
  watch.end = () => {
    clearInterval(timer);
    cancel.release();
  };
  return watch;
}

interface Ended {
  readonly status: runs.RunEnd;
  readonly exitCode: number | null;
}

/** Makes the shell exec a single program: a shell around it would exit on a Ctrl-C that the program survives. */
function asSession(command: string): string {
  return /^[\w@%+:,./-]+(?: [\w@%+=:,./' -]*)?$/.test(command) ? `exec ${command}` : command;
}

function endOf(result: OneOffResult, stopping: boolean): Ended {
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
