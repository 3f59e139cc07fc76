import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Client } from "../contract/client.ts";
import { findPlatform } from "./find-platform.ts";
import { namedProject, type CliContext } from "./context.ts";

type Kind = keyof typeof readers;
type Reader = (client: Client, slug: string) => Promise<readonly string[]>;

/** Kinds of words that only the platform knows, each with a function that reads them from the API. */
const readers = {
  slugs: async (client) =>
    (await client.call("projects.list", { query: { deleted: false } })).projects.map(({ slug }) => slug),
  deleted: async (client) =>
    (await client.call("projects.list", { query: { deleted: true } })).projects
      .filter(({ state }) => state === "deleted")
      .map(({ slug }) => slug),
  keys: async (client, slug) =>
    (await client.call("env.list", { params: { slug } })).variables
      .filter(({ system }) => !system)
      .map(({ key }) => key),
  jobs: async (client, slug) => (await client.call("cron.list", { params: { slug } })).jobs.map(({ name }) => name),
  hostnames: async (client, slug) =>
    (await client.call("domains.list", { params: { slug } })).domains.map(({ hostname }) => hostname),
} satisfies Record<string, Reader>;

/** Commands that such a word may follow. */
const commands: Readonly<Record<string, Kind>> = {
  open: "slugs",
  "projects show": "slugs",
  "projects settings": "slugs",
  "projects delete": "slugs",
  "projects undelete": "deleted",
  "projects purge": "deleted",
  "env unset": "keys",
  "env restore": "keys",
  "cron run": "jobs",
  "cron runs": "jobs",
  "cron remove": "jobs",
  "domains check": "hostnames",
  "domains remove": "hostnames",
};

const keptMs = 30_000;
const waitMs = 2000;

/** Returns the words that may follow `before` on the command line; none if there are none to read. Rejects if the platform takes too long. */
export async function completionWords(ctx: CliContext, before: readonly string[]): Promise<readonly string[]> {
  const isProject = ["-p", "--project"].includes(before.at(-1) ?? "");
  const at = before.findIndex((word) => word === "-p" || word === "--project");
  const path = before.filter((word, index) => !word.startsWith("-") && (at === -1 || index !== at + 1)).slice(0, 2);
  const kind = isProject ? "slugs" : (commands[path.join(" ")] ?? commands[path[0] ?? ""]);
  if (kind === undefined) return [];
  if (at !== -1 && !isProject) ctx.options.project = before[at + 1] ?? "";
  const slug = kind === "slugs" || kind === "deleted" ? "" : ((await namedProject(ctx)) ?? "");
  const { url, token = "" } = await findPlatform(ctx.environment, ctx.options);
  const mark = createHash("sha256").update([url, token, kind, slug].join("\n")).digest("hex");
  return (await readKept(ctx, mark)) ?? keep(ctx, mark, await readWords(ctx, kind, slug));
}

async function readWords(ctx: CliContext, kind: Kind, slug: string): Promise<readonly string[]> {
  const limit = new Promise<readonly string[]>((_, reject) => {
    setTimeout(() => reject(new Error("The platform answers too slowly.")), waitMs).unref();
  });
  return Promise.race([readers[kind](await ctx.client(), slug), limit]);
}

interface Kept {
  readonly mark: string;
  readonly at: number;
  readonly words: readonly string[];
}

const keptFile = (ctx: CliContext) => join(dirname(ctx.environment.configFile), "completion.json");

// Users press the completion key repeatedly, so the last result is cached, with a hash in place of the token.
async function readKept(ctx: CliContext, mark: string): Promise<readonly string[] | undefined> {
  const text = await readFile(keptFile(ctx), "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  const kept = JSON.parse(text) as Kept;
  return kept.mark === mark && Date.now() - kept.at < keptMs ? kept.words : undefined;
}

async function keep(ctx: CliContext, mark: string, words: readonly string[]): Promise<readonly string[]> {
  const file = keptFile(ctx);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await writeFile(file, JSON.stringify({ mark, at: Date.now(), words } satisfies Kept), { mode: 0o600 });
  return words;
}

/** Paths of the commands that such words may follow, as the shells' scripts write them. */
export const pathsWithWords = Object.keys(commands).map((path) => ` ${path}`);
