import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { sendSignal, type ProcessIdentity } from "./processes.ts";
import { attempt } from "./attempt.ts";

const looksToAnswer = 6;
// On an overloaded machine, a healthy process may get no processor time for seconds; ending it would cut every connection and add to the load.
const looksAtMost = 120;

/** The processes that an answer may depend on, and what to do with them. */
export interface Answering {
  processes(): readonly ProcessIdentity[];
  /** Called for a process that a signal had stopped and that Berth continued. */
  continued(pid: number): void;
  /** The pause between checks; default 250 ms. */
  readonly lookEveryMs?: number;
  /** Returns the threads of a process; by default as the kernel reports them. */
  readonly threads?: (pid: number) => readonly ThreadState[];
}

export interface ThreadState {
  readonly id: string;
  /** proc(5): R runnable, S sleeping, D waiting for the disk, T stopped by a signal. */
  readonly state: string;
  readonly ranMs: number;
  /** How long it was runnable and had no processor. It grows only when the thread gets one. */
  readonly waitedMs: number;
}

/**
 * Resolves with the answer, or with undefined when the process hangs: it did not answer although it could have run before six checks.
 * Checks before which it waited for a processor or the disk do not count, for half a minute at most. Counts checks, not seconds, because
 * this process may itself be late and find the answer unread. Continues a process that a signal has stopped. Rejects as `ask` does.
 */
export async function awaitAnswer<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  answering: Answering,
): Promise<T | undefined> {
  const { processes, continued, lookEveryMs = 250, threads = readThreads } = answering;
  const over = new AbortController();
  const answer = ask(over.signal).then((value) => ({ value }));
  try {
    let before = new Map<string, ThreadState>();
    for (let looks = 0, own = 0; looks < looksAtMost && own < looksToAnswer; looks += 1) {
      const pause = sleep(lookEveryMs, undefined, { signal: over.signal }).catch(() => undefined);
      const answered = await Promise.race([answer, pause]);
      if (answered !== undefined) return answered.value;
      const present = processes();
      const seen = present.flatMap(({ pid }) => threads(pid));
      continueStopped(present, seen, continued);
      if (!seen.some((thread) => wasHeldUp(thread, before.get(thread.id), lookEveryMs))) own += 1;
      before = new Map(seen.map((thread) => [thread.id, thread]));
    }
    return undefined;
  } finally {
    over.abort();
    answer.catch(() => {});
  }
}

/** Continues the processes whose first thread is stopped, because a signal stops all threads. */
function continueStopped(
  processes: readonly ProcessIdentity[],
  threads: readonly ThreadState[],
  continued: (pid: number) => void,
): void {
  const stopped = new Set(threads.flatMap(({ id, state }) => (state === "T" ? [id] : [])));
  for (const identity of processes)
    if (stopped.has(`${identity.pid}`) && sendSignal(identity, "SIGCONT")) continued(identity.pid);
}

/** Returns whether a thread was kept from running since the previous check although it was ready. */
function wasHeldUp(now: ThreadState, before: ThreadState | undefined, lookEveryMs: number): boolean {
  if (now.state === "D") return true;
  if (before === undefined) return false;
  const waits = now.state === "R" && now.ranMs === before.ranMs;
  return waits || now.waitedMs - before.waitedMs > lookEveryMs / 2;
}

/** Returns what the kernel says about the threads of a process, the first one first; none when it has ended. */
export function readThreads(pid: number): ThreadState[] {
  return attempt(() => readdirSync(`/proc/${pid}/task`).flatMap((id) => readThread(`/proc/${pid}/task/${id}`, id)), []);
}

function readThread(path: string, id: string): ThreadState[] {
  try {
    const stat = readFileSync(`${path}/stat`, "utf8");
    const [ran = 0, waited = 0] = readFileSync(`${path}/schedstat`, "utf8").split(" ").map(Number);
    return [{ id, state: stat.charAt(stat.lastIndexOf(")") + 2), ranMs: ran / 1e6, waitedMs: waited / 1e6 }];
  } catch {
    return [];
  }
}
