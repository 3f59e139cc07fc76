import { createHash } from "node:crypto";
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
/** How long a request may take: a storage that fell silent must be noticed, but 55 kB/s are enough. */
const answerTimeoutMs = (body?: Uint8Array) => 30_000 + Math.ceil((body?.length ?? 0) / 55);

/**
 * Sends a signed request and resolves with the response if it is a success or one of `expected`. Retries network failures and server
 * errors, which is safe because S3's requests are idempotent. Throws `BucketRefused` or `StorageFull`.
 */
export async function send(address: BucketAddress, request: BucketRequest): Promise<Response> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await sendOnce(address, request);
    } catch (error) {
      request.signal?.throwIfAborted();
      if (attempt === attempts || !mayPass(error)) throw error;
      await new Promise((resolve) => setTimeout(resolve, firstPauseMs * 2 ** attempt * Math.random()));
    }
  }
}

async function sendOnce(address: BucketAddress, request: BucketRequest): Promise<Response> {
  const { method, body, expected = [] } = request;
  const signed = await sign(address, request);
  const response = await fetch(signed, {
    redirect: "error",
    signal: anySignal(request.signal, method === "GET" ? undefined : AbortSignal.timeout(answerTimeoutMs(body))),
    // Inside a Request object the body would become a stream, and the server would get no content length.
    ...(body === undefined ? {} : { body }),
  }).catch((error: unknown) => {
    request.signal?.throwIfAborted();
    throw new BucketRefused(null, reasonOf(error), error);
  });
  if (response.ok || expected.includes(response.status)) return response;
  throw refusal(response.status, tag(await response.text().catch(() => ""), "Code") ?? "");
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

function reasonOf(error: unknown): string {
  const { cause, name } = error as Error & { cause?: { code?: string } };
  return cause?.code ?? name;
}

function anySignal(...signals: readonly (AbortSignal | undefined)[]): AbortSignal | null {
  const given = signals.filter((signal) => signal !== undefined);
  return given.length === 0 ? null : AbortSignal.any(given);
}
