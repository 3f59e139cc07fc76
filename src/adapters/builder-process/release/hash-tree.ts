import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { hashRoot, measureTree, TreeTooLarge, type HashedTree, type TreeInput } from "./hash-root.ts";
import type { TreeAnswer, TreeTask } from "./hash-worker.ts";

export type { HashedFolder, HashedTree, TreeLimits } from "./hash-root.ts";

/** Hashes the content of one build. `measure` and `hash` throw `TreeTooLarge`, or the signal's reason when it aborts. */
export type Hashing = ReturnType<typeof startHashing>;

// Hashing a tree of this size takes about 10 ms at most.
const small = { entries: 200, bytes: 2 * 1024 * 1024 };

export function startHashing(signal: AbortSignal) {
  let worker: Worker | undefined;
  // An error between two tasks is harmless: the next task starts another thread.
  const start = () =>
    new Worker(new URL("./hash-worker.ts", import.meta.url))
      .on("error", () => {})
      .once("exit", () => (worker = undefined));
  const thread = () => (worker ??= start());
  const stop = () => void worker?.terminate();
  signal.addEventListener("abort", stop, { once: true });
  const perform = async (task: TreeTask) => {
    signal.throwIfAborted();
    const hashed = await send(thread(), task);
    signal.throwIfAborted();
    return hashed;
  };
  return {
    /** Starts the thread early, for a tree that is probably large. For a small one it is not worth it: starting takes longer than hashing. */
    expectMuch: () => void thread(),
    /** Measures a tree without reading files. */
    measure: async (input: TreeInput) => {
      if (worker !== undefined || unlessLarge(() => measureTree(smallOf(input)) ?? true) === null)
        await perform({ ...input, task: "measure" });
    },
    /**
     * Measures a tree, then computes SHA-256 over its sorted names, kinds, executable bits, link targets and contents. Leaves out owners and
     * times, so that equal content has the same digest everywhere. Reads a small tree directly, a large one in a thread.
     */
    async hash(input: TreeInput) {
      const hashed = worker === undefined ? unlessLarge(() => hashRoot(smallOf(input))) : null;
      return hashed ?? ((await perform({ ...input, task: "hash" })) as HashedTree);
    },
    stop() {
      signal.removeEventListener("abort", stop);
      stop();
    },
  };
}

const smallOf = (input: TreeInput): TreeInput => ({ ...input, limits: small });

function unlessLarge<T>(work: () => T): T | null {
  try {
    return work();
  } catch (error) {
    if (error instanceof TreeTooLarge) return null;
    throw error;
  }
}

async function send(worker: Worker, task: TreeTask): Promise<HashedTree | null> {
  const ended = new AbortController();
  const options = { signal: ended.signal };
  try {
    const reply = once(worker, "message", options).then(([message]) => message as TreeAnswer);
    const exit = once(worker, "exit", options).then((): TreeAnswer => ({
      outcome: "fault",
      error: new Error("the hashing thread ended"),
    }));
    worker.postMessage(task);
    const answer = await Promise.race([reply, exit]);
    if (answer.outcome === "done") return answer.hashed;
    throw answer.outcome === "too_large" ? new TreeTooLarge(answer.what, task.limits) : answer.error;
  } finally {
    ended.abort();
  }
}
