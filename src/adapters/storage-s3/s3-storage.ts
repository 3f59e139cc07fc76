import type { Readable } from "node:stream";
import { StorageMissing, type Storage } from "../../ports/storage.ts";
import { BucketRefused, receive, send, tag, type BucketAddress } from "./requests.ts";

export interface S3StorageOptions extends BucketAddress {
  /** Prepended to every key, such as `berth/`; may be empty. */
  readonly prefix: string;
}

/** Stores files as objects of an S3-compatible store. Large files are sent in parts and appear once the upload has been completed. */
export function createS3Storage(options: S3StorageOptions): Storage {
  return {
    put: async (key, content, signal) => put(options, keyOf(options, key), { content, signal }),
    open: (key, signal) => open(options, key, signal),
    async delete(key, signal) {
      const name = keyOf(options, key);
      await send(options, { method: "DELETE", key: name, signal, expected: [404] });
      const uploads = (await listUploads(options, name, signal)).filter((upload) => upload.key === name);
      for (const { uploadId } of uploads) await abandon(options, name, uploadId, signal);
    },
    sweep: (isBusy, signal) => sweep(options, isBusy, signal),
    free: async () => null,
  };
}

// S3 accepts 10,000 parts for an object, so this allows 160 GB. Memory holds one part being sent and the next being filled.
const partBytes = 16 * 1024 * 1024;

interface Source {
  readonly content: Readable;
  readonly signal: AbortSignal | undefined;
}

async function put(
  bucket: S3StorageOptions,
  key: string,
  { content, signal }: Source,
): Promise<{ size_bytes: number }> {
  const parts = partsOf(content);
  try {
    const first = await parts.next();
    const body = first.value ?? new Uint8Array();
    const second = first.done === true ? first : await parts.next();
    signal?.throwIfAborted();
    if (second.done !== true)
      return await putInParts(bucket, key, { parts: chain([body, second.value], parts), signal });
    await send(bucket, { method: "PUT", key, body, signal });
    return { size_bytes: body.length };
  } finally {
    content.destroy();
  }
}

type Part = Uint8Array<ArrayBuffer>;

async function putInParts(
  bucket: S3StorageOptions,
  key: string,
  { parts, signal }: { parts: AsyncIterable<Part>; signal: AbortSignal | undefined },
): Promise<{ size_bytes: number }> {
  const begun = await send(bucket, { method: "POST", key, query: { uploads: "" }, signal });
  const uploadId = tag(begun.text, "UploadId") ?? "";
  try {
    const marks: string[] = [];
    let size = 0;
    for await (const body of parts) {
      signal?.throwIfAborted();
      const query = { partNumber: String(marks.length + 1), uploadId };
      const sent = await send(bucket, { method: "PUT", key, query, body, signal });
      marks.push(sent.etag);
      size += body.length;
    }
    await complete(bucket, key, { uploadId, marks, signal });
    return { size_bytes: size };
  } catch (error) {
    // A sweep removes what a silent store keeps.
    await abandon(bucket, key, uploadId, AbortSignal.timeout(10_000)).catch(() => {});
    throw error;
  }
}

async function complete(
  bucket: S3StorageOptions,
  key: string,
  { uploadId, marks, signal }: { uploadId: string; marks: readonly string[]; signal: AbortSignal | undefined },
): Promise<void> {
  const parts = marks.map((mark, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${mark}</ETag></Part>`);
  const body = Buffer.from(`<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`);
  const { text } = await send(bucket, { method: "POST", key, query: { uploadId }, body, signal });
  // S3 sends the status before it assembles the parts, so an error may come in the body of a 200 response.
  if (text.includes("<Error>")) throw new BucketRefused(200, tag(text, "Code") ?? "");
}

async function abandon(bucket: S3StorageOptions, key: string, uploadId: string, signal?: AbortSignal): Promise<void> {
  await send(bucket, { method: "DELETE", key, query: { uploadId }, signal, expected: [404] });
}

async function open(bucket: S3StorageOptions, key: string, signal: AbortSignal | undefined): Promise<Readable> {
  const response = await receive(bucket, { method: "GET", key: keyOf(bucket, key), signal, expected: [404] });
  if (response.statusCode !== 404) return response;
  response.resume();
  throw new StorageMissing(key);
}

async function sweep(
  bucket: S3StorageOptions,
  isBusy: (key: string) => Promise<boolean>,
  signal?: AbortSignal,
): Promise<number> {
  let removed = 0;
  for (const { key, uploadId } of await listUploads(bucket, bucket.prefix, signal)) {
    if (await isBusy(key.slice(bucket.prefix.length))) continue;
    await abandon(bucket, key, uploadId, signal);
    removed += 1;
  }
  return removed;
}

async function listUploads(bucket: S3StorageOptions, prefix: string, signal?: AbortSignal) {
  const { text } = await send(bucket, { method: "GET", query: { uploads: "", prefix }, signal });
  const entries = [...text.matchAll(/<Upload>(.*?)<\/Upload>/gs)].map(([, entry]) => entry as string);
  const uploads = entries.map((entry) => ({ key: tag(entry, "Key") ?? "", uploadId: tag(entry, "UploadId") ?? "" }));
  return uploads.filter(({ key }) => key.startsWith(prefix));
}

function keyOf({ prefix }: S3StorageOptions, key: string): string {
  if (!/^(?:[A-Za-z0-9_-][A-Za-z0-9._-]*\/)*[A-Za-z0-9_-][A-Za-z0-9._-]*$/.test(key))
    throw new Error(`not the key of a file: ${key}`);
  return `${prefix}${key}`;
}

/** Splits the stream into parts of `partBytes`; the last one may be smaller. */
async function* partsOf(content: Readable): AsyncGenerator<Part, undefined> {
  let part = Buffer.alloc(partBytes);
  let filled = 0;
  for await (const chunk of content) {
    let rest = chunk as Buffer;
    while (rest.length > 0) {
      const taken = rest.copy(part, filled);
      filled += taken;
      rest = rest.subarray(taken);
      if (filled < partBytes) continue;
      yield part;
      part = Buffer.alloc(partBytes);
      filled = 0;
    }
  }
  if (filled > 0) yield part.subarray(0, filled);
  return undefined;
}

async function* chain(first: readonly Part[], rest: AsyncIterable<Part>): AsyncGenerator<Part> {
  yield* first;
  yield* rest;
}
