import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { promisify } from "node:util";
import { zstdDecompress } from "node:zlib";
import { ArchiveDamaged, type Storages } from "../../ports/storage.ts";
import { openStored, type ArchiveFile } from "./backup-archive.ts";
import { digestOf, type Piece } from "./pieces.ts";

/** A piece in a list. Lists from before Berth knew their lengths have none. */
export interface ListedPiece extends Piece {
  readonly length?: number;
}

type ListFile = Omit<ArchiveFile, "storage" | "onBytes">;

/**
 * Returns the tar archive of a backup of files, by its list. The stream fails with `ArchiveDamaged` when the list or a piece is missing or
 * differs from what was stored.
 */
export function readPieces(list: Omit<ArchiveFile, "storage">, listStorage: string, storages: Storages): Readable {
  return Readable.from(contentOf(list, listStorage, storages), { objectMode: false });
}

/** Returns the content of a backup's list: its pieces in their order, a line each. */
export function listText(pieces: readonly ListedPiece[]): string {
  const lengthOf = ({ length }: ListedPiece) => (length === undefined ? "" : ` ${length}`);
  return pieces.map((piece) => `${piece.sha256} ${piece.storage} ${piece.storage_key}${lengthOf(piece)}\n`).join("");
}

export function piecesOf(text: string): ListedPiece[] {
  const lines = text.split("\n").slice(0, -1);
  return lines.map((line) => {
    const [sha256 = "", storage = "", storage_key = "", length] = line.split(" ");
    return { sha256, storage, storage_key, ...(length === undefined ? {} : { length: Number(length) }) };
  });
}

/** Returns the pieces of a backup of files in their order. Throws `ArchiveDamaged` when its list is missing or damaged. */
export async function readList(
  { key, sha256, signal }: ListFile,
  listStorage: string,
  storages: Storages,
): Promise<ListedPiece[]> {
  const text = await read(storages, { storage: listStorage, key, signal });
  if (digestOf(text) !== sha256)
    throw new ArchiveDamaged("The backup's list is damaged: its checksum differs from the stored one.");
  return piecesOf(text.toString());
}

/** Returns a piece's content. Throws `ArchiveDamaged` when it is missing or damaged. */
export async function readPiece(
  { sha256, storage, storage_key: key }: Piece,
  storages: Storages,
  signal: AbortSignal,
): Promise<Buffer> {
  const packed = await read(storages, { storage, key, signal });
  const piece = await unpack(packed, { maxOutputLength: mostBytes }).catch(() => undefined);
  if (piece === undefined || digestOf(piece) !== sha256)
    throw new ArchiveDamaged("A part of the backup is damaged: its checksum differs from the stored one.");
  return piece;
}

const unpack = promisify(zstdDecompress);
const mostBytes = 4 * 1024 * 1024;

async function* contentOf(
  list: Omit<ArchiveFile, "storage">,
  listStorage: string,
  storages: Storages,
): AsyncGenerator<Buffer> {
  let bytes = 0;
  for (const each of await readList(list, listStorage, storages)) {
    const piece = await readPiece(each, storages, list.signal);
    list.onBytes((bytes += piece.length));
    yield piece;
  }
}

async function read(
  storages: Storages,
  { storage, key, signal }: { readonly storage: string; readonly key: string; readonly signal: AbortSignal },
): Promise<Buffer> {
  const store = storages.named[storage];
  if (store === undefined) throw new ArchiveDamaged(`A part is in the storage "${storage}", which is not configured.`);
  return buffer(await openStored({ storage: store, key, signal }));
}
