import { openSnapshot, storedBackup } from "../../features/backups/backups.ts";
import { diskUseOf, whatIsThere } from "../../features/disk/disk.ts";
import { bytesText } from "../../kit/bytes-text.ts";
import { FilesRefused, keptFolder, restoredFolder } from "../../kit/folder-tar.ts";
import { requireLease } from "../../store/leases.ts";
import type { End, Job, Work } from "./backup-job.ts";
import { ownerOf } from "./files-job.ts";

interface PathWork extends Work {
  readonly owner: { readonly project_id: string; readonly project_number: number };
  readonly path: string;
  /** Where it is taken from, and where what it replaces goes; both lie in the storage folder. */
  readonly from: string;
  readonly kept: string;
}

/** Puts one file or folder of a backup, or of a folder that was restored beside, into the live files. What it replaces is kept. */
export async function pathJob(given: Work, path: string): Promise<Job> {
  const { database_name: name, folder } = given.operation;
  const work = {
    ...{ ...given, path, owner: await ownerOf(given) },
    ...{ from: `${restoredFolder}/${folder ?? name}/${path}`, kept: `${keptFolder(name ?? "")}/${path}` },
  };
  return { perform: () => restorePath(work), cleanUp: () => undo(work) };
}

async function restorePath(work: PathWork): Promise<End> {
  const { platform, operation, progress, lease, signal, owner, path, from, kept } = work;
  const { runtime } = platform.ports;
  const isDone = await hasBeenDone(work);
  // Beyond its first attempt, what is there may be what it has put there: it is kept, too.
  const replaces = operation.replaces || operation.attempts > 1;
  if (!isDone) {
    await progress.enter("checking");
    if (!replaces) await requireNothingAt(work);
    if (operation.folder === null) await unpack(work);
    if (!(await exists(work, from))) throw new FilesRefused(`there is no ${from}`);
    await requireLease(platform.db, lease);
    await progress.enter("restoring");
    const moved = await runtime.moveStored(owner, { from, to: path, ...(replaces ? { kept } : {}) }, signal);
    if (moved === "missing" || moved === "taken")
      throw new FilesRefused(moved === "taken" ? `${path} was made anew meanwhile` : `there is no ${from}`);
  }
  await progress.enter("cleaning");
  if (operation.folder === null) await runtime.removeStored(owner, unpackedIn(work), signal);
  return { problem: null };
}

/** Whether an earlier attempt has done it, and ended before it could say so. */
async function hasBeenDone(work: PathWork): Promise<boolean> {
  const { operation, path, from, kept } = work;
  if (operation.attempts < 2) return false;
  if (await exists(work, kept)) return true;
  return operation.folder !== null && !(await exists(work, from)) && (await exists(work, path));
}

async function exists({ platform, owner }: PathWork, path: string): Promise<boolean> {
  return (await platform.ports.runtime.statStored(owner, path)) !== undefined;
}

const unpackedIn = ({ operation }: PathWork) => `${restoredFolder}/${operation.database_name}`;

async function requireNothingAt({ platform, owner, path }: PathWork): Promise<void> {
  const there = await platform.ports.runtime.statStored(owner, path);
  if (there === undefined) return;
  throw new FilesRefused(
    `${whatIsThere(path, there)}: to put the other in its place, say that it may be replaced; what is there now is then kept`,
  );
}

/** Unpacks the path beside the live files; a damaged backup fails here, before anything is touched. */
async function unpack(work: PathWork): Promise<void> {
  const { platform, operation, progress, signal, owner, path } = work;
  const { db, ports, settings } = platform;
  const backup = await storedBackup(db, operation.org_id, operation.backup_id);
  if (backup === undefined) throw new FilesRefused("the backup was deleted");
  const part = await (await openSnapshot(ports.storages, backup, signal)).part(path);
  if (part === undefined) throw new FilesRefused(`the backup has no ${path}`);
  const { use, limits } = await diskUseOf(db, operation, settings.disk);
  if ((use.storage_bytes ?? 0) + part.bytes > limits.storage_bytes)
    throw new FilesRefused(
      `${path} takes ${bytesText(part.bytes)} beside the ${bytesText(use.storage_bytes ?? 0)} of the live ones, and the project may have ${bytesText(limits.storage_bytes)}`,
    );
  progress.tell({ bytes_done: 0 });
  await ports.runtime.writeStorage(owner, operation.database_name, part.archive, signal);
}

/** Puts back what was moved away, unless the other is in its place already, and deletes what was unpacked. */
async function undo(work: PathWork): Promise<void> {
  const { platform, operation, lease, signal, owner, path, from, kept } = work;
  await requireLease(platform.db, lease);
  const { runtime } = platform.ports;
  const late = signal.aborted ? AbortSignal.timeout(60_000) : signal;
  if (await exists(work, from)) {
    const back = await runtime.moveStored(owner, { from: kept, to: path }, late);
    // The application has made the path anew meanwhile.
    const aside = `${keptFolder(`${operation.database_name}_${operation.attempts}`)}/${path}`;
    if (back === "taken") await runtime.moveStored(owner, { from: kept, to: aside }, late);
  }
  if (operation.folder === null) await runtime.removeStored(owner, unpackedIn(work), late);
}
