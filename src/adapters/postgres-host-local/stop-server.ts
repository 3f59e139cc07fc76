import { isAlive, sendSignal, type ProcessIdentity } from "../../kit/processes.ts";
import { until } from "../../kit/until.ts";
import { findProcesses } from "./find-processes.ts";

// A fast shutdown writes all dirty pages first.
const fastShutdownMs = 30_000;
const immediateShutdownMs = 5000;
const killMs = 5000;

/** Stops the server with this mark: fast, then at once, then by SIGKILL. Resolves when no process of it is alive; throws otherwise. */
export async function stopServer(mark: string, uid: number): Promise<void> {
  for (const [signal, waitMs] of [
    ["SIGINT", fastShutdownMs],
    ["SIGQUIT", immediateShutdownMs],
  ] as const) {
    const { postmaster } = findProcesses(mark, uid);
    if (postmaster) await endProcesses([postmaster], signal, waitMs);
  }
  const { postmaster, others } = findProcesses(mark, uid);
  const left = postmaster ? [postmaster, ...others] : others;
  if (!(await endProcesses(left, "SIGKILL", killMs)))
    throw new Error(`processes of PostgreSQL do not end: ${left.map(({ pid }) => pid).join(", ")}`);
}

/** Sends a signal to each process and waits for all to exit; returns false on timeout. */
async function endProcesses(
  processes: readonly ProcessIdentity[],
  signal: NodeJS.Signals,
  waitMs: number,
): Promise<boolean> {
  for (const process of processes) sendSignal(process, signal);
  const ended = await until(() => (processes.some(isAlive) ? undefined : true), { timeoutMs: waitMs, atMostMs: 50 });
  return ended === true;
}
