import { createHash } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { replaceFileAsync } from "../../kit/whole-file.ts";
import type { IngestPosition } from "../../ports/log-store.ts";
import type { InstanceKey } from "../../ports/runtime.ts";
import { readBatch, type StoredBatch } from "./runtime-log.ts";

/**
 * A position as stored on disk, written before its lines. It is valid once exactly these bytes are in the project's log; until then,
 * `before` is valid, so lines and position commit together although they are in two files. Each ordinal of a workload has one such file,
 * which the next attempt overwrites.
 */
interface Intention {
  readonly attempt: number;
  readonly project_id: string;
  readonly before: string | null;
  readonly cursor: string;
  readonly batch: StoredBatch & { readonly length: number; readonly sha256: string };
}

/** How far an instance's output has been stored, and the batch that a crash left incomplete. */
export interface PositionState {
  readonly cursor: string | null;
  readonly interrupted?: StoredBatch & { readonly length: number };
}

/** Records in the workload's folder that `batch` is about to be stored at `at`, together with the instance's new position. */
export async function intendPosition(
  dir: string,
  projectId: string,
  position: IngestPosition,
  stored: { at: StoredBatch; batch: Buffer; before: string | null },
): Promise<void> {
  const { at, batch, before } = stored;
  const { instance, cursor } = position;
  const intention: Intention = {
    attempt: instance.attempt,
    project_id: projectId,
    before,
    cursor,
    batch: { ...at, length: batch.length, sha256: digest(batch) },
  };
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await replaceFileAsync(positionFile(dir, instance), JSON.stringify(intention));
}

/** Reads the valid position; its cursor is null when nothing of the instance has been stored. `logDir` returns a project's log folder. */
export async function readPositionState(
  dir: string,
  instance: InstanceKey,
  logDir: (projectId: string) => string,
): Promise<PositionState> {
  const intention = await readIntention(positionFile(dir, instance));
  if (intention?.attempt !== instance.attempt) return { cursor: null };
  const { batch, before, cursor } = intention;
  const stored = await readBatch(logDir(intention.project_id), batch, batch.length);
  // If rotation has deleted the file, the file was full, so it contained the complete batch.
  if (stored === undefined || digest(stored) === batch.sha256) return { cursor };
  return { cursor: before, interrupted: batch };
}

async function readIntention(path: string): Promise<Intention | undefined> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as Intention;
  } catch {
    // A power failure emptied the file. The runtime has lost the output stored so far, so hardly a line is stored twice.
    return undefined;
  }
}

const positionFile = (dir: string, instance: InstanceKey): string => join(dir, `${instance.ordinal}.json`);

function digest(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
