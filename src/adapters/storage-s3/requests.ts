import { createHash } from "node:crypto";
import http, { type ClientRequest, type IncomingMessage } from "node:http";
import https from "node:https";
import { addAbortSignal, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { AwsClient } from "aws4fetch";
import { StorageFull } from "../../ports/storage.ts";

/** The address of a bucket. URLs are path-style (bucket in the path), which every S3-compatible server understands. */
export interface BucketAddress {
  /** Such as `https://s3.eu-central-1.amazonaws.com`. */
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretKey: string;
  /** How long the server may neither send nor receive anything. */
  readonly silenceMs?: number;
}

export interface BucketRequest {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  /** The object's key in the bucket, without a leading slash. */
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array<ArrayBuffer>;
  readonly signal?: AbortSignal | undefined;
  /** Status codes that are results for the caller, not errors. */
  readonly expected?: readonly number[];
}

/** The server refused the request or did not respond. The message has S3's error code, never an address or a key. */
export class BucketRefused extends Error {
  readonly status: number | null;
  readonly code: string;
  constructor(status: number | null, code: string, cause?: unknown) {
    super(
      status === null
        ? `the object storage cannot be reached (${code})`
        : `the object storage answered ${status} ${code}`,
      { cause },
    );
    this.name = "BucketRefused";
    this.status = status;
    this.code = code;
  }
}

const attempts = 4;
const firstPauseMs = 300;
const sliceBytes = 64 * 1024;

/**
 * Sends a signed request and resolves with the response if it is a success or one of `expected`. Retries network failures and server
 * errors, which is safe because S3's requests are idempotent. Throws `BucketRefused` or `StorageFull`.
 */
export function send(address: BucketAddress, request: BucketRequest) {
  return repeated(request, async () => {
    const response = await receiveOnce(address, request);
    return { etag: response.headers.etag ?? "", text: await text(response).catch(unreachable) };
  });
}

/** Does the same, and resolves as soon as the response begins. The caller reads or destroys it. */
export function receive(address: BucketAddress, request: BucketRequest): Promise<IncomingMessage> {
  return repeated(request, () => receiveOnce(address, request));
}

async function repeated<T>({ signal }: BucketRequest, once: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await once();
    } catch (error) {
      signal?.throwIfAborted();
      if (attempt === attempts || !mayPass(error)) throw error;
      await new Promise((resolve) => setTimeout(resolve, firstPauseMs * 2 ** attempt * Math.random()));
    }
  }
}

async function receiveOnce(address: BucketAddress, request: BucketRequest): Promise<IncomingMessage> {
  const { method, body, signal, expected = [] } = request;
  const signed = await sign(address, request);
  const headers = { ...Object.fromEntries(signed.headers), ...(body && { "content-length": body.length }) };
  const { request: begin } = signed.url.startsWith("https:") ? https : http;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = begin(signed.url, { method, headers, ...(signal && { signal }) });
    sent.on("response", resolve).on("error", reject);
    limitSilence(sent, address.silenceMs ?? 30_000);
    // In small parts, as each of them shows that the server receives something.
    Readable.from(body === undefined ? [] : slicesOf(body)).pipe(sent);
  }).catch(unreachable);
  if (signal !== undefined) addAbortSignal(signal, response);
  const status = response.statusCode ?? 0;
  if ((status >= 200 && status < 300) || expected.includes(status)) return response;
  throw refusal(status, tag(await text(response).catch(() => ""), "Code") ?? "");
}

function* slicesOf(body: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < body.length; at += sliceBytes) yield body.subarray(at, at + sliceBytes);
}

/** Ends a request when nothing more is sent or received. A transfer may take any time, and so may the reader of a response. */
function limitSilence(sent: ClientRequest, silenceMs: number): void {
  let response: IncomingMessage | undefined;
  sent.on("response", (begun) => (response = begun));
  sent.on("socket", (socket) => {
    let waitedAt = -1;
    // A reader may have begun to wait just before, so a silence is one of two looks in a row.
    const look = () => {
      const moved = response?.readableLength ? -1 : socket.bytesRead + socket.bytesWritten;
      if (moved >= 0 && moved === waitedAt) (response ?? sent).destroy(new BucketRefused(null, "ETIMEDOUT"));
      waitedAt = moved;
      socket.setTimeout(silenceMs / 2);
    };
    socket.setTimeout(silenceMs / 2).on("timeout", look);
    sent.once("close", () => socket.off("timeout", look));
  });
}

/** Signs the request with AWS Signature Version 4, which covers the body's SHA-256; the returned request itself has no body. */
function sign(address: BucketAddress, { method, key = "", query = {}, body }: BucketRequest): Promise<Request> {
  const { endpoint, bucket, region, accessKeyId, secretKey: secretAccessKey } = address;
  const client = new AwsClient({ accessKeyId, secretAccessKey, region, service: "s3" });
  const path = [bucket, ...(key === "" ? [] : key.split("/"))].map(encodeURIComponent).join("/");
  const url = new URL(`${endpoint.replace(/\/$/, "")}/${path}`);
  url.search = new URLSearchParams(query).toString();
  const payloadHash = createHash("sha256")
    .update(body ?? "")
    .digest("hex");
  return client.sign(url, { method, headers: { "x-amz-content-sha256": payloadHash } });
}

function refusal(status: number, code: string): Error {
  const refused = new BucketRefused(status, code);
  const isFull = status === 507 || /QuotaExceeded|StorageFull|EntityTooLarge/.test(code);
  return isFull ? new StorageFull(refused) : refused;
}

/** Returns the text of the first element of this name; S3's responses are flat enough for that. */
export function tag(xml: string, name: string): string | undefined {
  const found = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1];
  return found?.replaceAll("&quot;", '"').replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

function mayPass(error: unknown): boolean {
  if (!(error instanceof BucketRefused)) return false;
  return error.status === null || error.status >= 500 || error.status === 429 || error.code === "RequestTimeout";
}

function unreachable(error: unknown): never {
  if (error instanceof BucketRefused) throw error;
  throw new BucketRefused(null, (error as NodeJS.ErrnoException).code ?? (error as Error).name, error);
}
