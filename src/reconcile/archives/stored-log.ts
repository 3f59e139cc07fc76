import { Readable } from "node:stream";
import { promisify } from "node:util";
import { zstdDecompress } from "node:zlib";
import {
  ArchiveDamaged,
  archiveFolder,
  openChecked,
  type ArchiveChain,
  type ArchiveCopy,
} from "../../features/backups/backups.ts";
import type { ProjectKey } from "../../features/projects/projects.ts";
import { segmentName, type CopySummary, type LogShape, type RecoverySource } from "../../ports/postgres-host.ts";
import { StorageMissing, type Storage } from "../../ports/storage.ts";

const decompress = promisify(zstdDecompress);
/** How many segments are read from the storage at once. */
const readAhead = 8;

/** A part of a chain's log: from the segment with `start` up to `end`, which is null where all that is stored is wanted. */
interface StoredPart {
  readonly chain: Pick<ArchiveChain, "org_id" | "project_id" | "id"> & Omit<LogShape, "system">;
  readonly start: number;
  readonly end: number | null;
}

/** A segment of the stored log is missing or damaged. */
export class LogDamaged extends ArchiveDamaged {
  readonly segment: string;
  /** Where the segment begins. */
  readonly position: number;
  constructor({ segment, position }: Pick<LogDamaged, "segment" | "position">, cause: unknown, more = "") {
    super(`The log segment ${segment} in the archive is missing or damaged.${more}`, cause);
    this.name = "LogDamaged";
    this.segment = segment;
    this.position = position;
  }
}

/** Returns whether the stored content is at fault, and not the way to it. */
const isDamage = (error: unknown) =>
  error instanceof StorageMissing ||
  error instanceof ArchiveDamaged ||
  String((error as { code?: unknown }).code).startsWith("Z");

/** Reads stored log. Throws `LogDamaged` at a segment that is damaged, or missing before `end` or before others. */
async function* readLog(
  storage: Storage,
  { chain, start, end }: StoredPart,
  signal: AbortSignal,
): AsyncGenerator<{ name: string; content: Buffer }> {
  const size = chain.segment_bytes;
  const read = async (at: number) => {
    const name = segmentName(chain, at);
    try {
      const stored = await storage.open(`${archiveFolder(chain)}/${name}.zst`, signal);
      const content = await decompress(Buffer.concat(await stored.toArray({ signal })));
      if (end !== null && content.length < Math.min(size, end - at)) throw new ArchiveDamaged("It is too short.");
      return { name, content };
    } catch (error) {
      signal.throwIfAborted();
      if (!isDamage(error)) throw error;
      return new LogDamaged({ segment: name, position: at }, error);
    }
  };
  let lost: LogDamaged | undefined;
  for (let first = start - (start % size), isLast = false; !isLast && (end === null || first < end);) {
    const positions = Array.from({ length: readAhead }, (_, index) => first + index * size);
    const wanted = positions.filter((at) => end === null || at < end);
    // What is stored behind the first missing segment tells a loss from the end.
    isLast = lost !== undefined;
    for (const segment of await Promise.all(wanted.map(read))) {
      const isMissing = segment instanceof LogDamaged && segment.cause instanceof StorageMissing;
      if (segment instanceof LogDamaged) lost ??= segment;
      if (lost !== undefined && (end !== null || !isMissing)) throw lost;
      if (!(segment instanceof LogDamaged)) yield segment;
    }
    first += readAhead * size;
  }
}

/** Opens a copy and the log behind it, for a recovery. */
export async function openCopy(
  storage: Storage,
  { chain, base, end }: NewestCopy & Pick<StoredPart, "end">,
  {
    until,
    signal,
    onBytes = () => {},
  }: Pick<RecoverySource, "until" | "signal"> & { onBytes?: (bytes: number) => void },
): Promise<RecoverySource> {
  const { storage_key: key, sha256, backup_label, start } = base;
  return {
    ...{ until, signal, backup_label, segment_bytes: chain.segment_bytes, path: storage.path?.(key) },
    archive: await openChecked({ storage, key, sha256, signal, onBytes }),
    segments: readLog(storage, { chain, start, end }, signal),
  };
}

export function copyOf(row: ArchiveCopy): NewestCopy["base"] {
  const { start_position, backup_label, sha256, storage_key, restorable_from, created_at } = row;
  const known = { start: start_position ?? 0, backup_label: backup_label ?? "", sha256: sha256 ?? "" };
  return { ...known, storage_key, at: restorable_from ?? created_at };
}

/** The newest copy of a database, which a storage names for a platform that has lost its own rows. */
export interface NewestCopy {
  readonly chain: StoredPart["chain"];
  readonly base: Pick<CopySummary, "start" | "backup_label"> &
    Readonly<Record<"storage_key" | "sha256", string>> & {
      /** When it was made (RFC 3339). */
      readonly at: string;
    };
}

const newestKey = ({ org_id, project_id }: ProjectKey) => `archive/${org_id}/${project_id}/newest.json`;

export async function noteNewest(storage: Storage, { chain, base }: NewestCopy): Promise<void> {
  const { org_id, project_id, id, timeline, segment_bytes } = chain;
  const text = JSON.stringify({ chain: { org_id, project_id, id, timeline, segment_bytes }, base });
  await storage.put(newestKey(chain), Readable.from([Buffer.from(text)]));
}

export async function newestOf(storage: Storage, project: ProjectKey): Promise<NewestCopy | undefined> {
  try {
    const text = Buffer.concat(await (await storage.open(newestKey(project))).toArray());
    return JSON.parse(text.toString()) as NewestCopy;
  } catch (error) {
    if (error instanceof StorageMissing) return undefined;
    throw error;
  }
}

export const forgetNewest = (storage: Storage, project: ProjectKey) => storage.delete(newestKey(project));
