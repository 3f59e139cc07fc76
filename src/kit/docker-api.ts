import { request, type ClientRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { Agent, request as requestTls } from "node:https";
import { text } from "node:stream/consumers";
import type { Duplex, Readable } from "node:stream";
import { attempt } from "./attempt.ts";

export interface DockerApi {
  /** Sends a request and parses the JSON response; undefined when its body is empty. */
  call<T>(call: DockerCall): Promise<T>;
  /** Sends a request and resolves with the response once its head reports success. The caller must read or destroy it. */
  stream(call: DockerCall): Promise<IncomingMessage>;
  /** Sends a request that upgrades its connection to a bidirectional byte stream. */
  upgrade(call: DockerCall): Promise<Duplex>;
}

export interface DockerCall {
  /** Default GET. */
  readonly method?: "GET" | "POST" | "PUT" | "DELETE" | "HEAD";
  /** The path after the API version, such as `/containers/json`. */
  readonly path: string;
  /** Objects and arrays are sent as JSON, as the API's filters require. Undefined values are omitted. */
  readonly query?: Readonly<Record<string, unknown>>;
  /** Sent as JSON; a stream is sent as a tar archive. */
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Time limit for the response's head. Default 60 s; 0: none. */
  readonly timeoutMs?: number;
}

/** The oldest API version with everything that Berth needs: Docker 20.10. */
export const dockerApiVersion = "v1.41";
const defaultTimeoutMs = 60_000;

/** Where another machine's engine accepts connections, and the certificates (PEM) for them. */
export interface RemoteEngine {
  readonly host: string;
  readonly port: number;
  readonly ca: Buffer;
  readonly cert: Buffer;
  readonly key: Buffer;
}

/**
 * Creates a client for the engine behind a unix socket, or for another machine's engine. Each call opens its own connection: an engine closes idle connections and may be restarted, and a call that meets such
 * an end would fail.
 */
export function openDockerApi(engine: string | RemoteEngine): DockerApi {
  // Keeps no connection, but the TLS session, which makes the next handshake cheap.
  const agent = new Agent({ keepAlive: false });
  const dial: Dial = (options) =>
    typeof engine === "string"
      ? request({ socketPath: engine, agent: false, ...options })
      : requestTls({ ...engine, agent, ...options });
  const stream = async (call: DockerCall): Promise<IncomingMessage> => {
    const answer = await send(dial, call);
    const status = answer.statusCode ?? 0;
    if (status < 400) return answer;
    throw new DockerRefused(call, status, messageIn(await text(answer)));
  };
  return {
    stream,
    async call<T>(call: DockerCall) {
      const answer = await text(await stream(call));
      return (answer === "" ? undefined : JSON.parse(answer)) as T;
    },
    upgrade: (call) => sendUpgrade(dial, call),
  };
}

/** An error response of the engine: `status` is the HTTP status, the message is the engine's. */
export class DockerRefused extends Error {
  readonly status: number;
  constructor(call: DockerCall, status: number, message: string) {
    super(`Docker engine: ${call.method ?? "GET"} ${call.path}: ${status} ${message}`);
    this.name = "DockerRefused";
    this.status = status;
  }
}

/** Awaits `work`, but resolves with undefined when the engine responds with one of these statuses: what to remove is already gone. */
export async function unlessStatus<T>(work: Promise<T>, ...statuses: readonly number[]): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof DockerRefused && statuses.includes(error.status)) return undefined;
    throw error;
  }
}

type Dial = (options: RequestOptions) => ClientRequest;

function send(dial: Dial, call: DockerCall): Promise<IncomingMessage> {
  const isTar = call.body !== undefined && "pipe" in call.body;
  const json = call.body === undefined || isTar ? "" : JSON.stringify(call.body);
  const headers = {
    ...(isTar ? { "content-type": "application/x-tar" } : {}),
    ...(json === "" ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(json) }),
    ...call.headers,
  };
  return new Promise((resolve, reject) => {
    const sent = dial({
      headers,
      method: call.method ?? "GET",
      path: `/${dockerApiVersion}${call.path}${queryOf(call)}`,
      ...(call.signal === undefined ? {} : { signal: call.signal }),
    });
    const timeoutMs = call.timeoutMs ?? defaultTimeoutMs;
    const timer =
      timeoutMs === 0
        ? undefined
        : setTimeout(() => sent.destroy(new Error(`the Docker engine did not answer ${call.path}`)), timeoutMs);
    sent.once("response", (answer) => {
      clearTimeout(timer);
      resolve(answer);
    });
    sent.once("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    if (!isTar) return void sent.end(json);
    const tar = call.body as Readable;
    tar.once("error", (error) => sent.destroy(error));
    tar.pipe(sent);
  });
}

function sendUpgrade(dial: Dial, call: DockerCall): Promise<Duplex> {
  const path = `/${dockerApiVersion}${call.path}${queryOf(call)}`;
  const headers = { connection: "Upgrade", upgrade: "tcp", "content-length": "0" };
  return new Promise((resolve, reject) => {
    const sent = dial({ headers, method: call.method ?? "GET", path });
    sent.once("error", reject).once("upgrade", (_, socket, head) => {
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    sent.once("response", (answer) => {
      text(answer).then((said) => reject(new DockerRefused(call, answer.statusCode ?? 0, messageIn(said))), reject);
    });
    sent.end();
  });
}

function queryOf({ query = {} }: DockerCall): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) given.set(name, typeof value === "string" ? value : JSON.stringify(value));
  return given.size === 0 ? "" : `?${given.toString()}`;
}

function messageIn(answer: string): string {
  return attempt(() => String((JSON.parse(answer) as { message: unknown }).message), answer.slice(0, 1000));
}
