import { parentPort } from "node:worker_threads";
import { hashRoot, measureTree, TreeTooLarge, type HashedTree, type TreeInput } from "./hash-root.ts";

export interface TreeTask extends TreeInput {
  readonly task: "hash" | "measure";
}

export type TreeAnswer =
  | { readonly outcome: "done"; readonly hashed: HashedTree | null }
  | { readonly outcome: "too_large"; readonly what: TreeTooLarge["what"] }
  | { readonly outcome: "fault"; readonly error: unknown };

function answer(input: TreeTask): TreeAnswer {
  try {
    if (input.task === "hash") return { outcome: "done", hashed: hashRoot(input) };
    measureTree(input);
    return { outcome: "done", hashed: null };
  } catch (error) {
    return error instanceof TreeTooLarge ? { outcome: "too_large", what: error.what } : { outcome: "fault", error };
  }
}

parentPort?.on("message", (input: TreeTask) => parentPort?.postMessage(answer(input)));
