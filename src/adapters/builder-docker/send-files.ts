import { once } from "node:events";
import { createReadStream, type BigIntStats } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import type { ServerHttp2Stream } from "node:http2";
import { readFields, writeFields, type Fields } from "./protobuf.ts";

export interface SentEntry {
  /** Encoded `fsutil.types.Stat`. */
  readonly stat: Buffer;
  /** Opens a regular file's content; null for folders and links. */
  readonly open: (() => AsyncIterable<Buffer> | Iterable<Buffer>) | null;
}

/** Types of `fsutil.types.Packet`. */
const packets = { request: 1n, data: 2, end: 3 } as const;
const chunkBytes = 256 * 1024;

/** Answers a `DiffCopy` call of BuildKit: sends the entries, then the content of each file that it asks for by its place among them. */
export async function sendFiles(stream: ServerHttp2Stream, entries: AsyncIterable<SentEntry> | Iterable<SentEntry>) {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  const send = async (message: Buffer) => {
    if (!stream.write(framed(message))) await once(stream, "drain");
  };
  const contents: SentEntry["open"][] = [];
  for await (const { stat, open } of entries) {
    contents.push(open);
    await send(writeFields({ 2: stat }));
  }
  // An empty message ends the list.
  await send(Buffer.alloc(0));
  // Leaving the loop would break the stream off.
  for await (const packet of messagesOn(stream)) {
    const id = Number(packet.get(3)?.at(-1) ?? 0);
    if (packet.get(1)?.at(-1) !== packets.request) stream.end(framed(writeFields({ 1: packets.end })));
    else {
      for await (const chunk of contents[id]?.() ?? []) await send(writeFields({ 1: packets.data, 3: id, 4: chunk }));
      await send(writeFields({ 1: packets.data, 3: id }));
    }
  }
}

/** Adds gRPC's header: not compressed, and the length. */
export function framed(message: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

async function* messagesOn(stream: AsyncIterable<Buffer>): AsyncGenerator<Fields> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of stream) {
    rest = Buffer.concat([rest, chunk]);
    for (let end = endOf(rest); end <= rest.length; end = endOf(rest)) {
      yield readFields(rest.subarray(5, end));
      rest = rest.subarray(end);
    }
  }
}

const endOf = (bytes: Buffer): number => (bytes.length < 5 ? Number.POSITIVE_INFINITY : 5 + bytes.readUInt32BE(1));

export function fileEntry(name: string, text: string): SentEntry {
  const content = Buffer.from(text);
  return { stat: statOf(name, { mode: 0o100644n, size: BigInt(content.length), mtimeNs: 0n }), open: () => [content] };
}

const slash = Buffer.from("/");

/** Lists what is below `root`, in the order that BuildKit requires: each folder before its content, names by their bytes. Follows no links. */
export async function* entriesBelow(root: Buffer, folder = Buffer.alloc(0)): AsyncGenerator<SentEntry> {
  const names = await readdir(Buffer.concat([root, slash, folder]), { encoding: "buffer" });
  for (const name of names.toSorted((one, other) => Buffer.compare(one, other))) {
    const path = folder.length === 0 ? name : Buffer.concat([folder, slash, name]);
    const place = Buffer.concat([root, slash, path]);
    const found = await lstat(place, { bigint: true });
    if (found.isSymbolicLink())
      yield { stat: statOf(path, found, await readlink(place, { encoding: "buffer" })), open: null };
    else if (found.isFile())
      yield { stat: statOf(path, found), open: () => createReadStream(place, { highWaterMark: chunkBytes }) };
    else if (found.isDirectory()) {
      yield { stat: statOf(path, found), open: null };
      yield* entriesBelow(root, path);
    }
  }
}

/** The bits of Go's `FileMode` for what stat(2) calls the file's type. */
const goTypes: Readonly<Record<string, number>> = { "16384": 2 ** 31, "40960": 2 ** 27 };

/** Encodes a stat as root's, without the bits that give a program its owner's rights. */
function statOf(
  path: string | Buffer,
  { mode, size, mtimeNs }: Pick<BigIntStats, "mode" | "size" | "mtimeNs">,
  target?: Buffer,
): Buffer {
  const goMode = (goTypes[String(mode & 0o170000n)] ?? 0) + Number(mode & 0o777n);
  return writeFields({ 1: path, 2: goMode, 5: size, 6: mtimeNs, ...(target === undefined ? {} : { 7: target }) });
}
