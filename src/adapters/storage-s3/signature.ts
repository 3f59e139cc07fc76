import { createHash, createHmac } from "node:crypto";

/** Who signs, and for where. */
export interface Signer {
  readonly accessKeyId: string;
  readonly secretKey: string;
  readonly region: string;
}

/** What is sent. `path` is not encoded yet; `query` holds names and values as they are. */
export interface UnsignedRequest {
  readonly method: string;
  readonly host: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** SHA-256 of the body, in hexadecimal digits. */
  readonly payloadHash: string;
}

/** SHA-256 of an empty body. */
export const emptyHash = hashHex("");

/**
 * AWS Signature Version 4 for S3 (docs.aws.amazon.com/AmazonS3, "Authenticating Requests: Using the Authorization Header"):
 * all headers to send but `host`, which every HTTP client adds by itself.
 */
export function signedHeaders(signer: Signer, request: UnsignedRequest, now: Date): Record<string, string> {
  const time = now.toISOString().replaceAll(/[-:]|\.\d+/g, "");
  const headers: Record<string, string> = {
    ...lowerCase(request.headers ?? {}),
    "x-amz-content-sha256": request.payloadHash,
    "x-amz-date": time,
  };
  const named = Object.entries({ ...headers, host: request.host }).sort(([a], [b]) => (a < b ? -1 : 1));
  const names = named.map(([name]) => name).join(";");
  const canonical = [
    request.method,
    encodePath(request.path),
    encodeQuery(request.query ?? {}),
    ...named.map(([name, value]) => `${name}:${value.trim().replaceAll(/ +/g, " ")}`),
    "",
    names,
    request.payloadHash,
  ].join("\n");
  const scope = `${time.slice(0, 8)}/${signer.region}/s3/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", time, scope, hashHex(canonical)].join("\n");
  const signature = hmac(signingKey(signer, time.slice(0, 8)), text).toString("hex");
  const authorization = `AWS4-HMAC-SHA256 Credential=${signer.accessKeyId}/${scope},SignedHeaders=${names},Signature=${signature}`;
  return { ...headers, authorization };
}

/** A path as it stands in a request: everything but unreserved characters (RFC 3986) and slashes is encoded. */
export function encodePath(path: string): string {
  return path.split("/").map(encode).join("/");
}

/** A query string as it stands in a request and is signed: encoded and sorted. */
export function encodeQuery(query: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(query).map(([name, value]) => [encode(name), encode(value)] as const);
  return pairs
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
}

export function hashHex(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

function signingKey(signer: Signer, day: string): Buffer {
  const ofDay = hmac(`AWS4${signer.secretKey}`, day);
  return hmac(hmac(hmac(ofDay, signer.region), "s3"), "aws4_request");
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}

function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
}

function lowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
