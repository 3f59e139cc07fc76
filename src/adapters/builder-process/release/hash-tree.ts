import { Worker } from "node:worker_threads";

export interface HashedFolder {
  readonly digest: string;
  readonly sizeBytes: number;
}

export interface HashedTree extends HashedFolder {
  /** The folders and files directly below the root, by name; `HashTreeInput.known` of another time. */
  readonly entries: Readonly<Record<string, HashedFolder>>;
}

export interface HashTreeInput {
  readonly root: string;
  /** Folders directly below the root that are known already: they are not read again. */
  readonly known: Readonly<Record<string, HashedFolder>>;
}

/**
 * SHA-256 over a folder: sorted names, kinds, the executable bit, link targets and contents. Owners and times are left out, so
 * equal content gives equal digests everywhere. Runs in a thread of its own: hundreds of megabytes are read.
 */
export async function hashTree(input: HashTreeInput): Promise<HashedTree> {
  const worker = new Worker(new URL("./hash-worker.ts", import.meta.url), { workerData: input });
  try {
    return await new Promise<HashedTree>((resolve, reject) => {
      worker.once("message", resolve).once("error", reject);
      worker.once("exit", (code) => reject(new Error(`hashing ended with ${code}`)));
    });
  } finally {
    await worker.terminate();
  }
}
