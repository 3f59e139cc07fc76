import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { readEvents } from "../../contract/client.ts";
import { addCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { CliError } from "../failures.ts";
import { findPlatform } from "../find-platform.ts";

/** Adds `berth mcp`: passes an agent's messages on stdin to the platform's `/mcp`, and the answers to stdout. */
export function addMcp(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "mcp",
    summary: "Connect a coding agent that starts a program to the platform's tools (Model Context Protocol)",
    examples: ["berth mcp"],
  }).action(() => bridge(ctx));
}

interface Message {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: {
    readonly requestId?: string | number;
    readonly _meta?: Readonly<Record<string, unknown>>;
    readonly name?: unknown;
    readonly uri?: unknown;
  };
  readonly result?: { readonly protocolVersion?: string };
}

interface Link {
  readonly url: string;
  readonly token: string;
  readonly say: (message: unknown) => void;
  /** The protocol's version that the platform chose; undefined before that. */
  version: string | undefined;
}

async function bridge(ctx: CliContext): Promise<void> {
  const { url, token } = await findPlatform(ctx.environment, ctx.options);
  if (token === undefined)
    throw new CliError("unauthorized", "not_logged_in", {
      message: `You are not logged in to ${url}.`,
      hint: "Run `berth login`, or set BERTH_TOKEN.",
    });
  const { stdin, stdout } = ctx.environment;
  const say = (message: unknown) => void stdout.write(`${JSON.stringify(message)}\n`);
  const link: Link = { url: `${url}/mcp`, token, say, version: undefined };
  const open = new Map<unknown, AbortController>();
  const work = new Set<Promise<void>>();
  const ending = new AbortController();
  for await (const line of createInterface({ input: stdin, signal: ctx.signal })) {
    if (line.trim() === "") continue;
    const message = parse(line);
    if (message === undefined) {
      say({ jsonrpc: "2.0", id: null, error: { code: -32_700, message: "Not JSON." } });
      continue;
    }
    if (message.method === "notifications/cancelled") {
      open.get(message.params?.requestId)?.abort();
      continue;
    }
    const stop = new AbortController();
    if (message.id !== undefined) open.set(message.id, stop);
    const signal = AbortSignal.any([stop.signal, ending.signal]);
    const sent = pass(link, line, { message, signal }).finally(() => {
      work.delete(sent);
      open.delete(message.id);
    });
    work.add(sent);
    // The version has to be known before the next message.
    if (message.method === "initialize") await sent;
  }
  // A client that only closes its side still gets the answers to what it asked shortly before.
  await Promise.race([Promise.all(work), sleep(lingerMs, undefined, { ref: false })]);
  ending.abort();
}

const lingerMs = 2000;

function parse(line: string): Message | undefined {
  try {
    const value = JSON.parse(line) as unknown;
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

interface Sending {
  readonly message: Message;
  readonly signal: AbortSignal;
}

async function pass(link: Link, body: string, { message, signal }: Sending): Promise<void> {
  try {
    const headers = headersOf(link, message);
    const response = await fetch(link.url, { method: "POST", headers, body, signal, redirect: "manual" });
    const type = response.headers.get("content-type") ?? "";
    const tell = (answer: Message) => {
      link.version = answer.result?.protocolVersion ?? link.version;
      link.say(answer);
    };
    if (type.startsWith("text/event-stream") && response.body !== null) {
      for await (const { data } of readEvents(response.body, () => {})) tell(JSON.parse(data) as Message);
      return;
    }
    const text = await response.text();
    const answer = text === "" ? undefined : (JSON.parse(text) as Message & { jsonrpc?: string; error?: string });
    if (answer?.jsonrpc !== undefined) return tell(answer);
    if (!response.ok) throw new Error(answer?.error ?? `HTTP ${response.status}`);
  } catch (fault) {
    if (signal.aborted || message.id === undefined) return;
    const sentence = `The platform at ${link.url} did not answer: ${(fault as Error).message}`;
    link.say({ jsonrpc: "2.0", id: message.id, error: { code: -32_000, message: sentence } });
  }
}

/** Returns the headers of a message: since 2026-07-28 they repeat its version, method and the name that it is about. */
function headersOf({ token, version }: Link, { method, params }: Message): Record<string, string> {
  const own = params?._meta?.["io.modelcontextprotocol/protocolVersion"];
  const name = params?.name ?? params?.uri;
  const isModern = typeof own === "string";
  const said = isModern ? own : version;
  return {
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    ...(said === undefined ? {} : { "mcp-protocol-version": said }),
    ...(isModern && method !== undefined ? { "mcp-method": method } : {}),
    ...(isModern && typeof name === "string" ? { "mcp-name": name } : {}),
  };
}
