import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import WebSocket from "ws";
import { guardMs } from "../support/eventually.ts";

/** One answer, or how the request broke. */
export interface Answer {
  readonly slug: string;
  readonly status: number;
  readonly body: string;
  readonly error: string | null;
  readonly atMs: number;
}

/** Asks over kept connections; a broken request is an answer with status 0. */
export function ask(edgePort: number, slug: string, path: string, agent: Agent | false = false): Promise<Answer> {
  return new Promise((resolve) => {
    const end = (status: number, body: string, error: string | null) =>
      resolve({ slug, status, body, error, atMs: Date.now() });
    const asked = request(
      { host: "127.0.0.1", port: edgePort, path, headers: { host: `${slug}.localhost` }, agent },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", (error) => end(0, "", `cut: ${error.message}`));
        response.on("end", () => end(response.statusCode ?? 0, Buffer.concat(chunks).toString(), null));
      },
    );
    asked.setTimeout(guardMs, () => asked.destroy(new Error(`no answer within ${guardMs} ms`)));
    asked.on("error", (error) => end(0, "", error.message)).end();
  });
}

/** Requests at a steady rate, whatever becomes of them, until it is stopped. */
export interface Traffic {
  /** Resolves with all answers when the last is there. */
  stop(): Promise<Answer[]>;
  /** How many were asked so far. */
  count(): number;
}

/** Sends `perSecond` requests a second to these applications in turn, over at most 40 kept connections. */
export function startTraffic(edgePort: number, slugs: readonly string[], perSecond: number): Traffic {
  const agent = new Agent({ keepAlive: true, maxSockets: 40 });
  const answers: Promise<Answer>[] = [];
  const startedAt = performance.now();
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - startedAt) / 1000) * perSecond);
    while (answers.length < due)
      answers.push(ask(edgePort, slugs[answers.length % slugs.length] as string, "/", agent));
  }, 5);
  return {
    count: () => answers.length,
    async stop() {
      clearInterval(timer);
      const all = await Promise.all(answers);
      agent.destroy();
      return all;
    },
  };
}

/** Sends one request after the other, each taking `ms`, until it is stopped; then the last one is waited for. */
export function startSlowRequests(edgePort: number, slug: string, ms: number): Traffic {
  const answers: Answer[] = [];
  let running = true;
  const done = (async () => {
    while (running) answers.push(await ask(edgePort, slug, `/slow?ms=${ms}`));
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

/** A WebSocket that talks five times a second. */
export interface Talk {
  /** Messages answered so far. */
  readonly answered: () => number;
  /** Null while it is open, else how it ended. */
  readonly ended: () => string | null;
  /** Says goodbye; resolves with the close code. */
  close(): Promise<number>;
}

/** Opens a WebSocket to the application and keeps talking. */
export async function openTalk(edgePort: number, slug: string): Promise<Talk> {
  const socket = new WebSocket(`ws://127.0.0.1:${edgePort}/`, { headers: { host: `${slug}.localhost` } });
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

/** The answers that no user should have seen: broken ones, errors, and versions that were never deployed. */
export function failures(answers: readonly Answer[], isKnown: (body: string) => boolean): Answer[] {
  return answers.filter((answer) => answer.error !== null || answer.status !== 200 || !isKnown(answer.body));
}
