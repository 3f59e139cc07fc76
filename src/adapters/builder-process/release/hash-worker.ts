import { createHash, hash } from "node:crypto";
import { closeSync, lstatSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from "node:fs";
import { join } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import type { HashedFolder, HashedTree, HashTreeInput } from "./hash-tree.ts";

const wholeBytes = 8 * 1024 * 1024;

function hashFolder(folder: string, child: (name: string, path: string) => HashedFolder = hashEntry): HashedFolder {
  const digest = createHash("sha256");
  let sizeBytes = 0;
  for (const name of readdirSync(folder).sort()) {
    const hashed = child(name, join(folder, name));
    sizeBytes += hashed.sizeBytes;
    digest.update(`${JSON.stringify(name)} ${hashed.digest}\n`);
  }
  return { digest: `d ${digest.digest("hex")}`, sizeBytes };
}

function hashEntry(_name: string, path: string): HashedFolder {
  const stats = lstatSync(path);
  if (stats.isDirectory()) return hashFolder(path);
  if (stats.isSymbolicLink()) return { digest: `l ${hash("sha256", readlinkSync(path))}`, sizeBytes: 0 };
  if (!stats.isFile()) return { digest: "other", sizeBytes: 0 };
  const content = stats.size <= wholeBytes ? hash("sha256", readFileSync(path)) : hashLarge(path);
  return { digest: `${stats.mode & 0o111 ? "x" : "f"} ${content}`, sizeBytes: stats.size };
}

function hashLarge(path: string): string {
  const digest = createHash("sha256");
  const buffer = Buffer.allocUnsafe(wholeBytes);
  const file = openSync(path, "r");
  try {
    for (let read = readSync(file, buffer); read > 0; read = readSync(file, buffer))
      digest.update(buffer.subarray(0, read));
  } finally {
    closeSync(file);
  }
  return digest.digest("hex");
}

const { root, known } = workerData as HashTreeInput;
const entries: Record<string, HashedFolder> = {};
const whole = hashFolder(root, (name, path) => (entries[name] = known[name] ?? hashEntry(name, path)));
parentPort?.postMessage({ ...whole, entries } satisfies HashedTree);
