import { parentPort } from "node:worker_threads";
import { hashRoot } from "./hash-root.ts";
import type { HashTreeInput } from "./hash-tree.ts";

parentPort?.once("message", ({ root, known }: HashTreeInput) => parentPort?.postMessage(hashRoot(root, known)));
