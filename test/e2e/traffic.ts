import { Agent, request } from "node:http";
import { Agent as HttpsAgent, request as secureRequest } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import WebSocket from "ws";
import { guardMs } from "../support/eventually.ts";

/** The response to a request, or the error that ended it. */
export interface Answer {
  readonly slug: string;
  readonly status: number;
  readonly body: string;
  readonly error: string | null;
  readonly atMs: number;
  readonly tookMs: number;
}

/** The address of an edge: its port on this machine, or host and port; `ca` selects HTTPS and contains the trusted certificates. */
export type EdgeAddress = number | { readonly host?: string; readonly port: number; readonly ca?: readonly string[] };

/** Returns the hostname of a project; a name with a dot already is a hostname. */
export const hostnameOf = (slug: string) => (slug.includes(".") ? slug : `${slug}.localhost`);

const placeOf = (edge: EdgeAddress) =>
  typeof edge === "number" ? { host: "127.0.0.1", port: edge } : { host: "127.0.0.1", ...edge };

const isSecure = (edge: EdgeAddress): boolean => typeof edge !== "number" && edge.ca !== undefined;

function secureOptions(edge: EdgeAddress, servername: string) {
  return typeof edge === "number" || edge.ca === undefined ? {} : { servername, ca: [...edge.ca] };
}

/** Sends a request, over the connections of `agent` if given. A failed request gets status 0. */
export function ask(edge: EdgeAddress, slug: string, path: string, agent: Agent | false = false): Promise<Answer> {
  return new Promise((resolve) => {
    const askedAt = performance.now();
    const end = (status: number, body: string, error: string | null) =>
      resolve({ slug, status, body, error, atMs: Date.now(), tookMs: performance.now() - askedAt });
    const host = hostnameOf(slug);
    const { host: address, port } = placeOf(edge);
    const options = { host: address, port, path, headers: { host }, agent, ...secureOptions(edge, host) };
    const asked = (isSecure(edge) ? secureRequest : request)(options, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", (error) => end(0, "", `cut: ${error.message}`));
      response.on("end", () => end(response.statusCode ?? 0, Buffer.concat(chunks).toString(), null));
    });
    asked.setTimeout(guardMs, () => asked.destroy(new Error(`no answer within ${guardMs} ms`)));
    asked.on("error", (error) => end(0, "", error.message)).end();
  });
}

/** Requests that are sent until `stop`. */
export interface Traffic {
  /** Stops sending, waits for the open requests and returns all responses. */
  stop(): Promise<Answer[]>;
  /** Returns the number of requests so far. */
  count(): number;
}

/** Sends `perSecond` requests a second to these applications in turn, over at most 40 persistent connections. */
export function startTraffic(edge: EdgeAddress, slugs: readonly string[], perSecond: number): Traffic {
  const agent = new (isSecure(edge) ? HttpsAgent : Agent)({ keepAlive: true, maxSockets: 40 });
  const traffic = startAsking((index) => ask(edge, slugs[index % slugs.length] as string, "/", agent), perSecond);
  return { ...traffic, stop: () => traffic.stop().finally(() => agent.destroy()) };
}

/** Calls `askOne` `perSecond` times a second, without waiting for responses. */
export function startAsking(askOne: (index: number) => Promise<Answer>, perSecond: number): Traffic {
  const answers: Promise<Answer>[] = [];
  const startedAt = performance.now();
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - startedAt) / 1000) * perSecond);
    while (answers.length < due) answers.push(askOne(answers.length));
  }, 5);
  return {
    count: () => answers.length,
    stop() {
      clearInterval(timer);
      return Promise.all(answers);
    },
  };
}

/** Sends one request after the other, each of which takes `ms`. */
export function startSlowRequests(edge: EdgeAddress, slug: string, ms: number): Traffic {
  const answers: Answer[] = [];
  let running = true;
  const done = (async () => {
    while (running) answers.push(await ask(edge, slug, `/slow?ms=${ms}`));
  })();
  return {
    count: () => answers.length,
    async stop() {
      running = false;
      await done;
      return answers;
    },
  };
}

/** A WebSocket that sends a message five times a second. */
export interface Talk {
  /** Returns the number of replies so far. */
  readonly answered: () => number;
  /** Returns null while the WebSocket is open, else how it ended. */
  readonly ended: () => string | null;
  /** Closes the WebSocket and returns the close code. */
  close(): Promise<number>;
}

/** Opens a WebSocket to the application and sends messages until it closes. */
export async function openTalk(edge: EdgeAddress, slug: string): Promise<Talk> {
  const host = hostnameOf(slug);
  const { host: address, port } = placeOf(edge);
  const url = `${isSecure(edge) ? "wss" : "ws"}://${address}:${port}/`;
  const socket = new WebSocket(url, { headers: { host }, ...secureOptions(edge, host) });
  let answered = 0;
  let ended: string | null = null;
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  const timer = setInterval(() => socket.send("hello"), 200);
  const closed = new Promise<number>((resolve) =>
    socket.once("close", (code) => {
      clearInterval(timer);
      ended ??= `closed with ${code}`;
      resolve(code);
    }),
  );
  socket.on("message", () => (answered += 1));
  socket.on("error", (error) => (ended ??= error.message));
  return {
    answered: () => answered,
    ended: () => ended,
    async close() {
      socket.close(1000);
      return Promise.race([closed, sleep(guardMs, -1, { ref: false })]);
    },
  };
}

// Browsers and proxies in front of an edge commonly give up after 30 to 60 s; the slow requests of these tests take 10 s.
const patienceMs = 30_000;

/** Returns the responses that no visitor should get: errors, versions that were never deployed, and responses after more than 30 s. */
export function failures(answers: readonly Answer[], isKnown: (body: string) => boolean): Answer[] {
  return answers.filter(
    ({ error, status, body, tookMs }) => error !== null || status !== 200 || !isKnown(body) || tookMs > patienceMs,
  );
}

/** Returns a text such as `1200 requests, the longest took 31 ms`. */
export function summary(answers: readonly Answer[]): string {
  const longestMs = answers.reduce((longest, { tookMs }) => Math.max(longest, tookMs), 0);
  return `${answers.length} requests, the longest took ${Math.round(longestMs)} ms`;
}
