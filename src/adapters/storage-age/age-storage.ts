import { Readable } from "node:stream";
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { type Storage, ArchiveDamaged } from "../../ports/storage.ts";

export interface AgeStorageOptions {
  readonly storage: Storage;
  /** Returns the age recipients that can open what is stored from now on. */
  readonly recipients: () => Promise<readonly string[]>;
  /** Returns the age identities to open files with. */
  readonly identities: () => readonly string[];
  /** Whether the file with this key is stored as it is. */
  readonly isPlain: (key: string) => boolean;
}

/**
 * Keeps files in another storage as age files (age-encryption.org/v1), which the program `age` opens too. Sizes are those of the content.
 * Files that were stored plain are given back as they are; a changed one fails with `ArchiveDamaged`.
 */
export function createAgeStorage({ storage, recipients, identities, isPlain }: AgeStorageOptions): Storage {
  return {
    async put(key, content, signal) {
      if (isPlain(key)) return storage.put(key, content, signal);
      let size_bytes = 0;
      const counted = async function* () {
        for await (const chunk of content as AsyncIterable<Buffer>) {
          size_bytes += chunk.length;
          yield chunk;
        }
      };
      try {
        await storage.put(key, encryptTo(await recipients(), counted()), signal);
        return { size_bytes };
      } finally {
        content.destroy();
      }
    },

    async open(key, signal) {
      const source = await storage.open(key, signal);
      if (isPlain(key)) return source;
      const content = Readable.from(decrypted(source as AsyncIterable<Buffer>, identities), { objectMode: false });
      return content.once("close", () => source.destroy());
    },

    delete: (key, signal) => storage.delete(key, signal),
    sweep: (isBusy, signal) => storage.sweep(isBusy, signal),
    free: () => storage.free(),
  };
}

/** Returns the content as an age file that each of the recipients opens. */
export const encryptTo = (recipients: readonly string[], content: AsyncIterable<Buffer>): Readable =>
  Readable.from(encrypted(content, recipients), { objectMode: false });

/** Loads the library when something is encrypted: its curves take 5 MB, which a platform that stores on its own disk never needs. */
const loadAge = () => import("age-encryption");

const blockBytes = 64 * 1024;
const tagBytes = 16;
const nonceBytes = 16;
const intro = Buffer.from("age-encryption.org/v1\n");
const mostHeaderBytes = 64 * 1024;
const algorithm = "chacha20-poly1305";

/** Encrypts a stream as the program `age` does. Node.js's own cipher makes the blocks, in a third of the library's time. */
async function* encrypted(content: AsyncIterable<Buffer>, recipients: readonly string[]): AsyncGenerator<Buffer> {
  const { header, fileKey } = await beginFile(recipients);
  const nonce = randomBytes(nonceBytes);
  yield Buffer.concat([header, nonce]);
  const key = payloadKey(fileKey, nonce);
  let index = 0;
  for await (const { block, isLast } of blocksOf(content, blockBytes)) {
    const cipher = createCipheriv(algorithm, key, blockNonce(index, isLast), { authTagLength: tagBytes });
    yield Buffer.concat([cipher.update(block), cipher.final(), cipher.getAuthTag()]);
    index += 1;
  }
}

/** Decrypts an age file; gives other content back as it is. Throws `ArchiveDamaged` when it was changed or cut, or no identity opens it. */
async function* decrypted(source: AsyncIterable<Buffer>, identities: () => readonly string[]): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]();
  let head: Buffer = Buffer.alloc(0);
  let payloadAt = findPayload(head);
  while (payloadAt === undefined) {
    const next = await chunks.next();
    if (next.done === true) break;
    head = Buffer.concat([head, next.value]);
    payloadAt = findPayload(head);
  }
  if (payloadAt === undefined && head.length >= intro.length) throw new ArchiveDamaged("The stored file is cut off.");
  const rest = follow(head.subarray(payloadAt ?? 0), chunks);
  if (payloadAt === undefined || payloadAt === null) {
    yield* rest;
    return;
  }
  const fileKey = await openHeader(head.subarray(0, payloadAt - nonceBytes), identities());
  const key = payloadKey(fileKey, head.subarray(payloadAt - nonceBytes, payloadAt));
  let index = 0;
  for await (const { block, isLast } of blocksOf(rest, blockBytes + tagBytes)) {
    const plain = openBlock(key, blockNonce(index, isLast), block);
    if (plain.length === 0 && index > 0) throw changed();
    yield plain;
    index += 1;
  }
}

/** Returns where the content of an age file begins; null for another file, undefined when more of it is needed. */
function findPayload(head: Buffer): number | null | undefined {
  const length = Math.min(head.length, intro.length);
  if (!head.subarray(0, length).equals(intro.subarray(0, length))) return null;
  const last = head.indexOf("\n--- ");
  const end = last === -1 ? -1 : head.indexOf("\n", last + 1);
  if (end !== -1 && head.length > end + nonceBytes) return end + 1 + nonceBytes;
  if (head.length > mostHeaderBytes) throw changed();
  return undefined;
}

async function* follow(first: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
}

/** Lets the library make a header, and takes the key that it made from a recipient that wraps nothing. */
async function beginFile(recipients: readonly string[]) {
  const age = new (await loadAge()).Encrypter();
  let fileKey = Buffer.alloc(0);
  age.addRecipient({
    wrapFileKey(key) {
      fileKey = Buffer.from(key);
      return [];
    },
  });
  for (const recipient of recipients) age.addRecipient(recipient);
  const empty = Buffer.from(await age.encrypt(new Uint8Array()));
  return { header: empty.subarray(0, -(nonceBytes + tagBytes)), fileKey };
}

async function openHeader(header: Buffer, identities: readonly string[]): Promise<Uint8Array> {
  const age = new (await loadAge()).Decrypter();
  for (const identity of identities) age.addIdentity(identity);
  try {
    return await age.decryptHeader(header);
  } catch (error) {
    const what = "The file was changed, or is encrypted to a recovery key that this machine does not have.";
    throw new ArchiveDamaged(what, error);
  }
}

function openBlock(key: Buffer, nonce: Buffer, block: Buffer): Buffer {
  if (block.length < tagBytes) throw new ArchiveDamaged("The stored file is cut off.");
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
  decipher.setAuthTag(block.subarray(-tagBytes));
  try {
    return Buffer.concat([decipher.update(block.subarray(0, -tagBytes)), decipher.final()]);
  } catch (error) {
    throw changed(error);
  }
}

const changed = (cause?: unknown) => new ArchiveDamaged("The stored file is damaged: it does not decrypt.", cause);

const payloadKey = (fileKey: Uint8Array, nonce: Buffer) =>
  Buffer.from(hkdfSync("sha256", fileKey, nonce, "payload", 32));

function blockNonce(index: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeUIntBE(index, 5, 6);
  nonce[11] = isLast ? 1 : 0;
  return nonce;
}

/** Cuts a stream into blocks of `size`, the last of which may be smaller. A block is overwritten once the next one is asked for. */
async function* blocksOf(
  content: AsyncIterable<Buffer>,
  size: number,
): AsyncGenerator<{ block: Buffer; isLast: boolean }> {
  const block = Buffer.allocUnsafe(size);
  let filled = 0;
  for await (const chunk of content) {
    for (let rest = chunk; rest.length > 0;) {
      if (filled === size) {
        yield { block, isLast: false };
        filled = 0;
      }
      const taken = rest.copy(block, filled);
      filled += taken;
      rest = rest.subarray(taken);
    }
  }
  yield { block: block.subarray(0, filled), isLast: true };
}
