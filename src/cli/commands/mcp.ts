import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { InvalidArgumentError, type Command } from "commander";
import { createClient, type Client } from "../../contract/client.ts";
import { addCommand } from "../command-tree.ts";
import { findPlatform } from "../find-platform.ts";
import type { CliContext } from "../context.ts";
import { CliError } from "../failures.ts";

interface McpCommandOptions {
  http?: boolean;
  port: number;
  readOnly?: boolean;
  allow?: string[];
}

/** Adds `berth mcp`: the API as MCP tools, over stdin and stdout or over HTTP on this machine. */
export function addMcp(program: Command, ctx: CliContext): void {
  const collect = (slug: string, before?: string[]) => [...(before ?? []), slug];
  addCommand(program, {
    usage: "mcp",
    summary: "Serve the API as tools for coding agents (Model Context Protocol)",
    examples: [
      "berth mcp",
      "berth mcp --read-only -p shop",
      "berth mcp --allow shop --allow blog",
      "berth mcp --http --port 4100",
    ],
  })
    .option("--read-only", "offer no tool that changes anything")
    .option("--allow <slug>", "reach only this project; may be repeated", collect)
    .option("--http", "serve over HTTP on 127.0.0.1 instead of stdin and stdout")
    .option("--port <number>", "the port for --http; 0 chooses a free one", portNumber, 4100)
    .action((options: McpCommandOptions) => serve(ctx, options, program.version() ?? ""));
}

async function serve(ctx: CliContext, options: McpCommandOptions, version: string): Promise<void> {
  const { url, token } = await findPlatform(ctx.environment, ctx.options);
  if (token === undefined)
    throw new CliError("unauthorized", "not_logged_in", {
      message: `You are not logged in to ${url}.`,
      hint: "Run `berth login`, or set BERTH_TOKEN.",
    });
  const client = createClient({ baseUrl: url, token, timeoutMs: 90_000 });
  const project = ctx.options.project ?? ctx.environment.project;
  const offer = { readOnly: options.readOnly === true, allowed: options.allow ?? null, project };
  // Loaded here, so that other commands don't wait for the packages it needs.
  const { createMcpServer } = await import("../mcp/server.ts");
  const warning = await warnAboutRights(ctx, client);
  const open = () => createMcpServer({ client, offer, version, token, warning });
  await (options.http === true ? overHttp(ctx, options.port, open) : overStdio(ctx, open));
}

const rightsTimeoutMs = 3000;

// Warns if the token has more rights than an agent needs, which are its organization's. If the platform does not respond, the server starts
// nevertheless: its tools report the problem.
async function warnAboutRights(ctx: CliContext, client: Client): Promise<string | undefined> {
  const me = await client.call("me.get", { signal: AbortSignal.timeout(rightsTimeoutMs) }).catch(() => undefined);
  if (me?.platform_admin !== true) return undefined;
  ctx.environment.stderr.write(
    "Warning: these tools act as the platform's administrator. Give an agent a token of its own: `berth tokens create agent --approval-mode`, then set BERTH_TOKEN.\n",
  );
  return "This login is the platform administrator's: it reaches settings of every organization, so change only what the user asked for.";
}

type Open = () => McpServer;

async function overStdio(ctx: CliContext, open: Open): Promise<void> {
  const { StdioServerTransport } = await import("@modelcontextprotocol/sdk/server/stdio.js");
  const { stdin, stdout } = ctx.environment;
  const server = open();
  await server.connect(new StdioServerTransport(stdin, stdout));
  await ended(ctx, new Promise<void>((resolve) => stdin.once("end", resolve).once("close", resolve)));
  await server.close();
}

async function overHttp(ctx: CliContext, port: number, open: Open): Promise<void> {
  const { serveHttp } = await import("../mcp/serve-http.ts");
  const keyFile = join(dirname(ctx.environment.configFile), "mcp-key");
  const served = await serveHttp({ port, key: await readKey(keyFile), open });
  ctx.environment.stderr.write(
    `Tools at ${served.url}; clients send the content of ${keyFile} as their bearer token.\n`,
  );
  await ended(ctx, new Promise<never>(() => {}));
  await served.close();
}

/** Waits until the client disconnects or Ctrl-C is pressed. */
async function ended(ctx: CliContext, left: Promise<void>): Promise<void> {
  const interrupted = new Promise<void>((resolve) =>
    ctx.signal.addEventListener("abort", () => resolve(), { once: true }),
  );
  await Promise.race([left, interrupted]);
}

// Reads the key, or creates it. It stays the same, so that clients' settings stay valid; a user who can read it can also read the login
// beside it.
async function readKey(file: string): Promise<string> {
  const known = await readFile(file, "utf8").catch(() => "");
  if (known.trim() !== "") return known.trim();
  const made = randomBytes(32).toString("base64url");
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await writeFile(file, `${made}\n`, { mode: 0o600 });
  return made;
}

function portNumber(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new InvalidArgumentError("must be a whole number up to 65535.");
  return port;
}
