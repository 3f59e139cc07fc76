import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, rename, rm, statfs, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { StorageFull, StorageMissing, type Storage } from "../../ports/storage.ts";

/** Stores files in a folder that only its owner can access. Unfinished files are in a folder of their own, so that no listing shows them. */
export function createDiskStorage(options: { readonly dir: string }): Storage {
  const { dir } = options;
  return {
    put: (key, content, signal) => put(dir, key, { content, signal }),
    open: (key) => openFile(dir, key),
    path: (key) => fileOf(dir, key),
    delete: (key, signal) => remove(dir, key, signal),
    sweep: (isBusy, signal) => sweep(dir, isBusy, signal),
    async free() {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      const { bavail, bsize } = await statfs(dir);
      return bavail * bsize;
    },
  };
}

const unfinishedFolder = ".unfinished";

async function put(
  dir: string,
  key: string,
  { content, signal }: { content: Readable; signal: AbortSignal | undefined },
): Promise<{ size_bytes: number }> {
  const target = fileOf(dir, key);
  const unfinished = join(dir, unfinishedFolder, `${encodeURIComponent(key)}.${randomBytes(6).toString("hex")}`);
  await mkdir(dirname(unfinished), { recursive: true, mode: 0o700 });
  await mkdir(dirname(target), { recursive: true, mode: 0o700 });
  try {
    const size_bytes = await writeDurably(unfinished, content, signal);
    await rename(unfinished, target);
    await syncFolders(dir, dirname(target));
    return { size_bytes };
  } catch (error) {
    content.destroy();
    await rm(unfinished, { force: true });
    throw isFull(error) ? new StorageFull(error) : error;
  }
}

async function writeDurably(path: string, content: Readable, signal: AbortSignal | undefined): Promise<number> {
  const file = await open(path, "wx", 0o600);
  try {
    let size = 0;
    for await (const chunk of content) {
      signal?.throwIfAborted();
      await writeAll(file, chunk as Buffer);
      size += (chunk as Buffer).length;
    }
    await file.sync();
    return size;
  } finally {
    await file.close();
  }
}

async function writeAll(file: FileHandle, chunk: Buffer): Promise<void> {
  for (let at = 0; at < chunk.length;) at += (await file.write(chunk, at)).bytesWritten;
}

// A folder's entries are durable once the folder is synced; a new folder is itself an entry of its parent, so sync every level.
async function syncFolders(top: string, bottom: string): Promise<void> {
  for (let folder = bottom; ; folder = dirname(folder)) {
    const handle = await open(folder, "r");
    await handle.sync().finally(() => handle.close());
    if (folder === top || folder === dirname(folder)) return;
  }
}

async function openFile(dir: string, key: string): Promise<Readable> {
  const file = await open(fileOf(dir, key), "r").catch(ignoreMissing);
  if (file === undefined) throw new StorageMissing(key);
  return createReadStream("", { fd: file, highWaterMark: 1024 * 1024 });
}

async function remove(dir: string, key: string, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await rm(fileOf(dir, key), { force: true });
  await sweep(dir, async (other) => other !== key);
}

async function sweep(dir: string, isBusy: (key: string) => Promise<boolean>, signal?: AbortSignal): Promise<number> {
  const names = (await readdir(join(dir, unfinishedFolder)).catch(ignoreMissing)) ?? [];
  let removed = 0;
  for (const name of names) {
    signal?.throwIfAborted();
    if (await isBusy(decodeURIComponent(name.replace(/\.[0-9a-f]+$/, "")))) continue;
    await rm(join(dir, unfinishedFolder, name), { force: true });
    removed += 1;
  }
  return removed;
}

function fileOf(dir: string, key: string): string {
  if (!/^(?:[A-Za-z0-9_-][A-Za-z0-9._-]*\/)*[A-Za-z0-9_-][A-Za-z0-9._-]*$/.test(key))
    throw new Error(`not the key of a file: ${key}`);
  return join(dir, key);
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
  return undefined;
}

function isFull(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT"].includes((error as NodeJS.ErrnoException).code ?? "");
}
