import { createHash, randomBytes } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { IngestPosition } from "../../ports/log-store.ts";
import type { InstanceKey } from "../../ports/runtime.ts";
import { readBatch, type StoredBatch } from "./runtime-log.ts";

/**
 * A position as it lies on disk, written before its lines: it holds once exactly these bytes are in the project's log,
 * until then `before` does. So lines and position come into force together, although they are in two files. There is one for each
 * ordinal of a workload: the next attempt's takes its place.
 */
interface Intention {
  readonly attempt: number;
  readonly project_id: string;
  readonly before: string | null;
  readonly cursor: string;
  readonly batch: StoredBatch & { readonly length: number; readonly sha256: string };
}

/** How far an instance's output has been stored, and the batch that a crash kept from being stored whole. */
export interface PositionState {
  readonly cursor: string | null;
  readonly interrupted?: StoredBatch & { readonly length: number };
}

/** Writes down in the workload's folder that `batch` is about to be stored at `at`, and the instance's position with it. */
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
  const path = positionFile(dir, instance);
  const next = `${path}.${randomBytes(4).toString("hex")}.new`;
  await writeFile(next, JSON.stringify(intention), { mode: 0o600 });
  await rename(next, path);
}

/** The position in force; its cursor is null when nothing of the instance has been stored. `logDir` finds a project's log. */
export async function readPositionState(
  dir: string,
  instance: InstanceKey,
  logDir: (projectId: string) => string,
): Promise<PositionState> {
  const intention = await readIntention(positionFile(dir, instance));
  if (intention?.attempt !== instance.attempt) return { cursor: null };
  const { batch, before, cursor } = intention;
  const stored = await readBatch(logDir(intention.project_id), batch, batch.length);
  // A file that rotation has deleted was full, so the batch was in it long ago.
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
    // A power cut has emptied it. What was stored the runtime has forgotten, so that hardly a line comes twice.
    return undefined;
  }
}

const positionFile = (dir: string, instance: InstanceKey): string => join(dir, `${instance.ordinal}.json`);

function digest(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
