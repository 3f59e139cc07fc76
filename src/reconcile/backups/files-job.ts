import { Readable } from "node:stream";
import { promisify } from "node:util";
import { zstdCompress } from "node:zlib";
import * as backups from "../../features/backups/backups.ts";
import { diskUseOf } from "../../features/disk/disk.ts";
import { contentPieces } from "../../kit/content-pieces.ts";
import { FilesRefused, restoredFolder } from "../../kit/folder-tar.ts";
import type { Storage } from "../../ports/storage.ts";
import { requireLease } from "../../store/leases.ts";
import { archiveOf, requireRoom, type End, type Job, type Work } from "./backup-job.ts";

interface FilesWork extends Work {
  readonly owner: { readonly project_id: string; readonly project_number: number };
}

/** Backs up, restores and verifies the files of `$STORAGE_DIR`. */
export async function filesJob(given: Work): Promise<Job> {
  const { platform, operation } = given;
  const { limits } = await diskUseOf(platform.db, operation, platform.settings.disk);
  const work = { ...given, owner: await ownerOf(given) };
  const jobs = { backup: backUp, restore, verify };
  return {
    perform: () => jobs[operation.kind](work),
    cleanUp: () => cleanUp(work),
    ...(operation.kind === "backup"
      ? { atEnd: (tx) => backups.markUnusedPieces(tx, operation, limits.backups_bytes) }
      : {}),
  };
}

/** Returns whose storage folder an operation is about. */
export async function ownerOf({ platform, operation: { org_id, project_id } }: Work): Promise<FilesWork["owner"]> {
  const { number: project_number } = await platform.db
    .selectFrom("project")
    .select("number")
    .where(({ and }) => and({ org_id, id: project_id }))
    .executeTakeFirstOrThrow();
  return { project_id, project_number };
}

async function backUp(work: FilesWork): Promise<End> {
  const { platform, operation, lease, owner, progress, signal } = work;
  const { standard, named } = platform.ports.storages;
  const storage = named[standard] as Storage;
  await requireRoom(storage, 0);
  const { backup_id } = operation;
  const key = `${folderOf(work)}/${backup_id}-${lease.fence}.list`;
  if (!(await backups.setStorageKey(platform.db, lease, { backup_id, storage: standard, storage_key: key })))
    throw new Error("the lease was lost");
  await progress.enter("storing");
  const archive = await platform.ports.runtime.readStorage(owner, signal);
  if (archive === null) throw new FilesRefused("the project has no such folder before its first deploy");
  const index = new backups.FileIndex();
  const pieces: backups.ListedPiece[] = [];
  let size_bytes = 0;
  for await (const content of contentPieces(archive as AsyncIterable<Buffer>)) {
    signal.throwIfAborted();
    pieces.push(await stored(work, storage, content));
    index.push(content);
    progress.tell({ bytes_done: (size_bytes += content.length) });
  }
  const file_index = await storedIndex(work, storage, index);
  const list = backups.listText(pieces);
  await storage.put(key, Readable.from([Buffer.from(list)]), signal);
  const made = { size_bytes, sha256: backups.digestOf(list), row_counts: null, engine_version: null, file_index };
  return { problem: null, write: (tx) => backups.completeBackup(tx, operation, made) };
}

const folderOf = ({ operation: { org_id, project_id } }: Work) => `${org_id}/${project_id}/files`;
const pack = promisify(zstdCompress);

/** Stores the index like the files' own pieces, and returns its list; null when it is too large. */
async function storedIndex(work: FilesWork, storage: Storage, index: backups.FileIndex): Promise<string | null> {
  const parts = index.end();
  if (parts === null) return null;
  const pieces: backups.ListedPiece[] = [];
  for (const content of parts) pieces.push(await stored(work, storage, content));
  return backups.listText(pieces);
}

/** Stores a piece unless an earlier backup of the project has stored it. */
async function stored(work: FilesWork, storage: Storage, content: Buffer): Promise<backups.ListedPiece> {
  const { platform, operation, lease, signal } = work;
  const { db, ports } = platform;
  const { backup_id } = operation;
  const sha256 = backups.digestOf(content);
  const known = await backups.reusePiece(db, operation, sha256, backup_id);
  const length = content.length;
  if (known !== undefined) return { ...known, length };
  const packed = await pack(content);
  const left = await backups.leftPiece(db, operation, sha256);
  // Without the lease, the piece may be the next worker's.
  await requireLease(db, lease);
  if (left !== undefined) await ports.storages.named[left.storage]?.delete(left.storage_key);
  const storage_key = `${folderOf(work)}/${sha256}-${backup_id}-${lease.fence}`;
  const piece = { sha256, storage: ports.storages.standard, storage_key };
  await backups.addPiece(db, operation, piece, backup_id);
  await storage.put(storage_key, Readable.from([packed]), signal);
  await backups.completePiece(db, operation, piece, packed.length);
  return { ...piece, length };
}

function archive(work: FilesWork): Readable {
  const { platform, operation } = work;
  return backups.readPieces(archiveOf(work), operation.storage ?? "", platform.ports.storages);
}

async function restore(work: FilesWork): Promise<End> {
  const { platform, operation, owner, progress, signal } = work;
  await progress.enter("restoring");
  await platform.ports.runtime.writeStorage(owner, operation.database_name ?? "", archive(work), signal);
  return { problem: null };
}

async function verify(work: FilesWork): Promise<End> {
  const { operation, progress, signal } = work;
  await progress.enter("checking");
  const problem = await read(archive(work)).catch((error: unknown) => {
    signal.throwIfAborted();
    if (error instanceof backups.ArchiveDamaged) return error.message;
    throw error;
  });
  const verification = problem === null ? "verified" : "failed";
  const verdict = { verification, comparison: [], verification_problem: problem } as const;
  return { problem: null, write: (tx) => backups.recordVerdict(tx, operation, verdict) };
}

async function read(whole: Readable): Promise<null> {
  for await (const _ of whole);
  return null;
}

/** Deletes the files that an unfinished restore has unpacked, or the list of an unfinished backup; its pieces are found unused at its end. */
async function cleanUp(work: FilesWork): Promise<void> {
  const { platform, operation, lease, owner, signal } = work;
  await requireLease(platform.db, lease);
  const { kind, database_name: name, storage, storage_key } = operation;
  if (kind === "restore") {
    const late = signal.aborted ? AbortSignal.timeout(60_000) : signal;
    await platform.ports.runtime.removeStored(owner, `${restoredFolder}/${name}`, late);
  }
  if (kind === "backup" && storage !== null && storage_key !== null)
    await platform.ports.storages.named[storage]?.delete(storage_key);
}
