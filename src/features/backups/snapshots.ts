import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { createFairPlaces } from "../../kit/fair-places.ts";
import type { FolderEntry, FolderPlace } from "../../kit/look-into-folder.ts";
import { sparseParts, type TarEntry } from "../../kit/tar-index.ts";
import { ArchiveDamaged, type Storages } from "../../ports/storage.ts";
import { beginningsOf, entryOf, FileIndex } from "./file-index.ts";
import type { StoredBackup } from "./queries.ts";
import { piecesOf, readList, readPiece, type ListedPiece } from "./read-pieces.ts";

type Place = Omit<FolderPlace, "folder">;

/** The files in a backup of files. Its methods throw `ArchiveDamaged` when a part that they need is missing or damaged. */
export interface Snapshot {
  /** Lists a folder by name; undefined when there is none. */
  list(place: Place): Promise<readonly FolderEntry[] | undefined>;
  /** Reads a part of a file; undefined when there is none. */
  read(place: Place): Promise<Buffer | undefined>;
  /** Returns a file or folder with everything in it as a tar archive, and its size; undefined when there is none. */
  part(path: string): Promise<{ readonly bytes: number; readonly archive: Readable } | undefined>;
}

/** The backup cannot be looked into; the message says why, and what to do instead. */
export class SnapshotClosed extends Error {
  /** It can be opened later. */
  readonly isBusy: boolean;

  constructor(why: string, { isBusy = false } = {}) {
    super(why);
    this.isBusy = isBusy;
  }
}

/** What must be known of a backup to find a file in it. */
interface Contents {
  readonly pieces: readonly ListedPiece[];
  /** Where each piece ends in the archive. */
  readonly ends: readonly number[];
  readonly index: readonly Buffer[];
}

const mib = 1024 * 1024;
// Of a backup without an index, such as one from before Berth kept them.
const mostScanned = { bytes: 1024 * mib, ms: 20_000 };
const mostCached = 64 * mib;
/** What was opened last, by the backup's id. */
const cache = new Map<string, Contents>();

const sizeOf = ({ pieces, index }: Contents) => 400 * pieces.length + index.reduce((sum, part) => sum + part.length, 0);

function remember(id: string, contents: Contents): void {
  cache.delete(id);
  cache.set(id, contents);
  let bytes = [...cache.values()].reduce((sum, each) => sum + sizeOf(each), 0);
  for (const [oldest, each] of cache) {
    if (bytes <= mostCached) return;
    cache.delete(oldest);
    bytes -= sizeOf(each);
  }
}

// One at a time for each organization, so that another one's never waits for more than one of them.
const places = createFairPlaces({ all: 2, perOwner: 1, waitingPerOwner: 16 });

/** Opens a backup of files. Throws `SnapshotClosed`, and `ArchiveDamaged` when its list is missing or damaged. */
export async function openSnapshot(storages: Storages, backup: StoredBackup, signal: AbortSignal): Promise<Snapshot> {
  const leave = await places.take({ owner: backup.org_id, key: backup.id }, signal);
  if (leave === null) throw new SnapshotClosed(tooManyAtOnce, { isBusy: true });
  try {
    const contents = cache.get(backup.id) ?? (await contentsOf(storages, backup, signal));
    remember(backup.id, contents);
    const opened = { ...contents, storages, signal };
    return {
      list: (place) => list(opened, place),
      read: (place) => read(opened, place),
      part: (path) => part(opened, path),
    };
  } finally {
    leave();
  }
}

async function contentsOf(storages: Storages, backup: StoredBackup, signal: AbortSignal): Promise<Contents> {
  const file = { key: backup.storage_key ?? "", sha256: backup.sha256 ?? "", signal };
  const pieces = await readList(file, backup.storage ?? "", storages);
  const index = backup.file_index === null ? undefined : await storedIndex(storages, backup.file_index, signal);
  if (index === undefined) return scan(storages, pieces, signal);
  return { pieces, ends: endsOf(pieces.map(({ length = 0 }) => length)), index };
}

/** Returns the index that was stored with the backup; undefined when it is damaged, which the files need not be. */
async function storedIndex(storages: Storages, list: string, signal: AbortSignal): Promise<Buffer[] | undefined> {
  try {
    const index: Buffer[] = [];
    for (const piece of piecesOf(list)) index.push(await readPiece(piece, storages, signal));
    return index;
  } catch (error) {
    if (error instanceof ArchiveDamaged) return undefined;
    throw error;
  }
}

async function scan(storages: Storages, pieces: readonly ListedPiece[], signal: AbortSignal): Promise<Contents> {
  const made = new FileIndex();
  const lengths: number[] = [];
  const endMs = performance.now() + mostScanned.ms;
  let bytes = 0;
  for (const each of pieces) {
    const piece = await readPiece(each, storages, signal);
    bytes += piece.length;
    if (bytes > mostScanned.bytes || performance.now() > endMs) throw new SnapshotClosed(tooLarge);
    lengths.push(piece.length);
    made.push(piece);
  }
  const index = made.end();
  if (index === null) throw new SnapshotClosed(tooMany);
  return { pieces, ends: endsOf(lengths), index };
}

const tooManyAtOnce = "The organization looks into many backups at once. Try again in a few seconds.";
const instead = "Download it whole, or restore it: `berth backups restore` puts its files beside the live ones.";
const tooLarge = `This backup has no index of its files, and is too large to be searched without one (a gibibyte or 20 seconds). ${instead}`;
const tooMany = `This backup has more than 300,000 files, or very long names: too much to look into it. ${instead}`;

function endsOf(lengths: readonly number[]): number[] {
  let end = 0;
  return lengths.map((length) => (end += length));
}

interface Opened extends Contents {
  readonly storages: Storages;
  readonly signal: AbortSignal;
}

/** Returns the entry of a path and those below it, in their order. `isWanted` may leave out lines before they are parsed. */
async function* entriesAt(
  { index, signal }: Opened,
  path: string,
  isWanted: (line: string) => boolean = () => true,
): AsyncGenerator<TarEntry> {
  const { own, below } = beginningsOf(path);
  for (const part of index) {
    for (const line of part.toString().split("\n").slice(0, -1)) {
      const isThere = path === "" || line.startsWith(own) || line.startsWith(below);
      if (isThere && isWanted(line)) yield entryOf(line);
    }
    // Other requests are served between two parts.
    await setImmediate(undefined, { signal });
  }
}

async function list(opened: Opened, { path, offset, count }: Place): Promise<FolderEntry[] | undefined> {
  const from = path === "" ? 0 : path.length + 1;
  const start = path === "" ? 2 : beginningsOf(path).below.length;
  // What is deeper has a slash before the path's end, unless a quotation mark in a name looks like that end.
  const isNear = (line: string) => {
    const slash = line.indexOf("/", start);
    return slash === -1 || slash > line.indexOf('",', start);
  };
  let isFolder = path === "";
  let seen = 0;
  const found: TarEntry[] = [];
  for await (const entry of entriesAt(opened, path, isNear)) {
    if (entry.path === path) isFolder = path === "" || entry.kind === "folder";
    else if (!entry.path.slice(from).includes("/") && (seen += 1) > offset) found.push(entry);
    if (found.length === count) break;
  }
  if (!isFolder) return undefined;
  const linked = await entriesOf(
    opened,
    found.flatMap(({ target }) => target ?? []),
  );
  return found.map((entry) => shown(entry, from, linked.get(entry.target ?? "")));
}

const shownKinds = {
  hard_link: "file",
  sparse: "file",
  file: "file",
  folder: "folder",
  link: "link",
  other: "other",
} as const;

function shown(
  { path, kind, size_bytes, modified }: TarEntry,
  from: number,
  linked: TarEntry | undefined,
): FolderEntry {
  const modified_at = new Date(modified * 1000).toISOString();
  return { name: path.slice(from), kind: shownKinds[kind], size_bytes: linked?.size_bytes ?? size_bytes, modified_at };
}

/** Returns the entries with these paths. */
async function entriesOf(opened: Opened, paths: readonly string[]): Promise<ReadonlyMap<string, TarEntry>> {
  const wanted = new Set(paths);
  const found = new Map<string, TarEntry>();
  if (wanted.size === 0) return found;
  for await (const entry of entriesAt(opened, "")) if (wanted.has(entry.path)) found.set(entry.path, entry);
  return found;
}

async function entryAt(opened: Opened, path: string): Promise<TarEntry | undefined> {
  const { own } = beginningsOf(path);
  for await (const entry of entriesAt(opened, path, (line) => line.startsWith(own))) return entry;
  return undefined;
}

async function read(opened: Opened, { path, offset, count }: Place): Promise<Buffer | undefined> {
  const named = await entryAt(opened, path);
  const entry = named?.kind === "hard_link" ? await entryAt(opened, named.target ?? "") : named;
  if (entry === undefined || (entry.kind !== "file" && entry.kind !== "sparse")) return undefined;
  const length = Math.max(0, Math.min(count, entry.size_bytes - offset));
  if (entry.kind === "file") return bytesAt(opened, entry.data + offset, entry.data + offset + length);
  const content = Buffer.alloc(length);
  let stored = entry.data;
  for (const { offset: at, bytes } of sparseParts(await bytesAt(opened, entry.start, entry.data))) {
    const [from, to] = [Math.max(at, offset), Math.min(at + bytes, offset + length)];
    if (from < to) (await bytesAt(opened, stored + from - at, stored + to - at)).copy(content, from - offset);
    stored += bytes;
  }
  return content;
}

async function bytesAt(opened: Opened, from: number, to: number): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(range(opened, from, to)));
}

async function* range({ pieces, ends, storages, signal }: Opened, from: number, to: number): AsyncGenerator<Buffer> {
  for (const [at, end] of ends.entries()) {
    const start = ends[at - 1] ?? 0;
    const piece = pieces[at];
    if (piece === undefined || start >= to) return;
    if (end <= from) continue;
    yield (await readPiece(piece, storages, signal)).subarray(Math.max(0, from - start), to - start);
  }
}

async function part(opened: Opened, path: string) {
  const ranges: { start: number; end: number }[] = [];
  const targets: string[] = [];
  let bytes = 0;
  for await (const { start, end, size_bytes, target } of entriesAt(opened, path)) {
    const last = ranges.at(-1);
    if (last?.end === start) last.end = end;
    else ranges.push({ start, end });
    bytes += size_bytes;
    if (target !== undefined) targets.push(target);
  }
  if (ranges.length === 0) return undefined;
  // The content of a hard link may be outside of the folder.
  for (const { start, end, size_bytes, path: other } of (await entriesOf(opened, targets)).values()) {
    if (other === path || other.startsWith(`${path}/`)) continue;
    ranges.push({ start, end });
    bytes += size_bytes;
  }
  const inOrder = ranges.toSorted((a, b) => a.start - b.start);
  return { bytes, archive: Readable.from(archiveOf(opened, inOrder), { objectMode: false }) };
}

/** The blocks that end a tar archive. */
const archiveEnd = Buffer.alloc(1024);

async function* archiveOf(opened: Opened, ranges: readonly { start: number; end: number }[]): AsyncGenerator<Buffer> {
  for (const { start, end } of ranges) yield* range(opened, start, end);
  yield archiveEnd;
}
