import { createHash, randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { IngestPosition } from "../../ports/log-store.ts";
import { readBatch, type StoredBatch } from "./runtime-log.ts";

/**
 * A position as it lies on disk, written before its lines: it holds once exactly these bytes are in the project's log,
 * until then `before` does. So lines and position come into force together, although they are in two files.
 */
interface Intention {
  readonly project_id: string;
  readonly before: string | null;
  readonly cursor: string;
  readonly batch: StoredBatch & { readonly length: number; readonly sha256: string };
}

// Of an instance that has said nothing for so long nothing is left that could be read twice.
const forgetAfterMs = 90 * 24 * 3600 * 1000;

/** How far an instance's output has been stored, and the batch that a crash kept from being stored whole. */
export interface PositionState {
  readonly cursor: string | null;
  readonly interrupted?: StoredBatch & { readonly length: number };
}

/** Writes down that `batch` is about to be stored at `at`, and the instance's position with it. */
export async function intendPosition(
  dir: string,
  projectId: string,
  position: IngestPosition,
  stored: { at: StoredBatch; batch: Buffer; before: string | null },
): Promise<void> {
  const { at, batch, before } = stored;
  const { instance, cursor } = position;
  const intention: Intention = {
    project_id: projectId,
    before,
    cursor,
    batch: { ...at, length: batch.length, sha256: digest(batch) },
  };
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const path = positionFile(dir, instance);
  const next = `${path}.${randomBytes(4).toString("hex")}.new`;
  await writeFile(next, JSON.stringify(intention), { mode: 0o600 });
  await rename(next, path);
}

/** The position in force; its cursor is null when nothing of the instance has been stored. `logDir` finds a project's log. */
export async function readPositionState(
  dir: string,
  instance: string,
  logDir: (projectId: string) => string,
): Promise<PositionState> {
  const intention = await readIntention(positionFile(dir, instance));
  if (intention === undefined) return { cursor: null };
  const { batch, before, cursor } = intention;
  const stored = await readBatch(logDir(intention.project_id), batch, batch.length);
  // A file that rotation has deleted was full, so the batch was in it long ago.
  if (stored === undefined || digest(stored) === batch.sha256) return { cursor };
  return { cursor: before, interrupted: batch };
}

/** Deletes the positions of a project, and those nobody has moved for three months. */
export async function removePositions(dir: string, projectId: string): Promise<void> {
  const names = await readdir(dir).catch(() => []);
  for (const name of names) {
    const path = join(dir, name);
    const found = await stat(path).catch(() => undefined);
    const isOld = found !== undefined && found.mtimeMs < Date.now() - forgetAfterMs;
    if (isOld || (await readIntention(path))?.project_id === projectId) await rm(path, { force: true });
  }
}

async function readIntention(path: string): Promise<Intention | undefined> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  return text === undefined ? undefined : (JSON.parse(text) as Intention);
}

function positionFile(dir: string, instance: string): string {
  return join(dir, `${digest(Buffer.from(instance)).slice(0, 40)}.json`);
}

function digest(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
