import { Worker } from "node:worker_threads";
import { hashRoot, TooMuch, type HashedFolder, type HashedTree } from "./hash-root.ts";

export type { HashedFolder, HashedTree } from "./hash-root.ts";

export interface HashTreeInput {
  readonly root: string;
  /** Folders directly below the root that are known already: they are not read again. */
  readonly known: ReadonlyMap<string, HashedFolder>;
}

/** The hashing of one build's content. */
export interface Hashing {
  /** Much will have to be read: makes a thread for it, which takes longer than reading a small application. */
  expectMuch(): void;
  /**
   * SHA-256 over a folder: sorted names, kinds, the executable bit, link targets and contents. Owners and times are left out, so
   * equal content gives equal digests everywhere. Reads hundreds of megabytes in a thread of its own, little at once. To be asked once.
   */
  hash(input: HashTreeInput): Promise<HashedTree>;
  /** Ends the thread. */
  stop(): void;
}

// What takes some 10 ms at most.
const little = { entries: 200, bytes: 2 * 1024 * 1024 };

export function startHashing(): Hashing {
  let worker: Worker | undefined;
  const thread = () => (worker ??= makeThread(() => (worker = undefined)));
  return {
    expectMuch: () => void thread(),
    async hash(input) {
      const small = worker === undefined ? hashLittle(input) : null;
      return small ?? askThread(thread(), input);
    },
    stop: () => void worker?.terminate(),
  };
}

/** A fault while nobody has asked is no harm: another thread is made then. */
function makeThread(onEnd: () => void): Worker {
  return new Worker(new URL("./hash-worker.ts", import.meta.url)).on("error", () => {}).once("exit", onEnd);
}

function hashLittle({ root, known }: HashTreeInput): HashedTree | null {
  try {
    return hashRoot(root, known, little);
  } catch (error) {
    if (error instanceof TooMuch) return null;
    throw error;
  }
}

function askThread(worker: Worker, input: HashTreeInput): Promise<HashedTree> {
  return new Promise((resolve, reject) => {
    worker.once("message", resolve).once("error", reject);
    worker.once("exit", (code) => reject(new Error(`hashing ended with ${code}`)));
    worker.postMessage(input);
  });
}
