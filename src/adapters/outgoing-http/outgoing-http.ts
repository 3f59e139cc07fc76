import { request as requestHttp, type IncomingMessage, type RequestOptions } from "node:http";
import { request as requestHttps } from "node:https";
import { literalOf, pinAddress, type AddressPolicy } from "../../kit/pinned-address.ts";
import type { OutgoingHttp, OutgoingOutcome, OutgoingRequest } from "../../ports/outgoing-http.ts";

/** Sends requests with Node.js's client, each over its own connection to an address that was resolved and checked beforehand. */
export function createOutgoingHttp(policy: AddressPolicy): OutgoingHttp {
  return {
    async send(request, signal) {
      const url = new URL(request.url);
      const limited = AbortSignal.any([signal, AbortSignal.timeout(request.timeoutMs)]);
      const pinned = await pinAddress(url.hostname, policy);
      if (pinned.outcome !== "found") return failed(pinned.reason);
      return sendTo(request, { url, address: pinned.address, signal: limited });
    },
  };
}

function failed(reason: string): OutgoingOutcome {
  return { outcome: "failed", reason };
}

interface Target {
  readonly url: URL;
  readonly address: string;
  readonly signal: AbortSignal;
}

function sendTo(request: OutgoingRequest, { url, address, signal }: Target): Promise<OutgoingOutcome> {
  const isSecure = url.protocol === "https:";
  const isName = literalOf(url.hostname) === undefined;
  const { method = "POST" } = request;
  const length = method === "GET" ? {} : { "content-length": Buffer.byteLength(request.body) };
  const options: RequestOptions & { readonly servername?: string } = {
    host: address,
    port: url.port === "" ? (isSecure ? 443 : 80) : Number(url.port),
    path: `${url.pathname}${url.search}`,
    method,
    headers: { ...request.headers, host: url.host, ...length },
    agent: false,
    signal,
    ...(isName ? { servername: url.hostname } : {}),
  };
  return new Promise((resolve) => {
    const sent = (isSecure ? requestHttps : requestHttp)(options, (answer) => {
      void excerptOf(answer, request.excerptBytes).then((excerpt) => {
        sent.destroy();
        const contentType = answer.headers["content-type"];
        resolve({ outcome: "answered", status: answer.statusCode ?? 0, ...(contentType && { contentType }), excerpt });
      });
    });
    sent.on("error", (error: NodeJS.ErrnoException) => resolve(failed(reasonOf(error, signal))));
    sent.end(method === "GET" ? undefined : request.body);
  });
}

/** Returns the first `mostBytes` bytes of a response as text; if the response breaks off, returns what has arrived. */
function excerptOf(answer: IncomingMessage, mostBytes: number): Promise<string> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    const end = () => resolve(textOf(Buffer.concat(parts).subarray(0, mostBytes)));
    answer.on("data", (part: Buffer) => {
      parts.push(part);
      bytes += part.length;
      if (bytes >= mostBytes) end();
    });
    answer.on("close", end).on("error", end);
  });
}

// Decodes in stream mode, which omits an incomplete character at the end. Removes NUL, which PostgreSQL's JSON columns refuse.
function textOf(bytes: Buffer): string {
  return new TextDecoder().decode(bytes, { stream: true }).replaceAll("\0", "\uFFFD");
}

function reasonOf({ code = "" }: NodeJS.ErrnoException, signal: AbortSignal): string {
  if (signal.aborted || code === "ABORT_ERR") return "The receiver did not answer in time.";
  if (code === "ECONNREFUSED") return "The receiver refused the connection.";
  if (code.startsWith("ERR_TLS") || code.includes("CERT") || code.includes("SSL"))
    return "The receiver's certificate is not valid for its name.";
  return `The connection to the receiver broke${code === "" ? "" : ` (${code})`}.`;
}
