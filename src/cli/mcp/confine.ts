import type { Client } from "../../contract/client.ts";
import type { Row } from "../../contract/table.ts";
import { usageError, type CliError } from "../failures.ts";

/** Keeps calls within some of the organization's projects. */
export interface Confinement {
  /** Throws `CliError` when the call would reach beyond them. */
  check(row: Row, params: Readonly<Record<string, string>>): Promise<void>;
  /** The answer without what is about other projects. */
  filter(row: Row, document: unknown): unknown;
}

/** Confines to these projects; null: to none in particular. */
export function confine(client: Client, allowed: readonly string[] | null): Confinement {
  if (allowed === null) return { check: async () => {}, filter: (_, document) => document };
  return {
    async check(row, params) {
      if (row.access === "public" || row.name === "me.get" || row.name in lists) return;
      const slug = params["slug"];
      if (slug !== undefined && allowed.includes(slug)) return;
      if (row.path.startsWith("/v1/projects/:slug") || !(await isOfOne(client, row, { allowed, id: params["id"] })))
        throw refusal(allowed);
    },
    filter: (row, document) => filterList(row, document, allowed),
  };
}

/** Lists over several projects, each entry of which tells its project. */
const lists: Readonly<Record<string, { field: string; slugOf: (entry: Entry) => unknown }>> = {
  "projects.list": { field: "projects", slugOf: ({ slug }) => slug },
  "approvals.list": { field: "approvals", slugOf: ({ path }) => slugInPath(path) },
};

type Entry = Readonly<Record<string, unknown>>;

function filterList(row: Row, document: unknown, allowed: readonly string[]): unknown {
  const list = lists[row.name];
  if (list === undefined) return document;
  const fields = document as Readonly<Record<string, readonly Entry[]>>;
  const kept = fields[list.field]?.filter((entry) => allowed.includes(String(list.slugOf(entry))));
  return { ...fields, [list.field]: kept };
}

function slugInPath(path: unknown): string | undefined {
  return /^\/v1\/projects\/([^/?]+)/.exec(String(path))?.[1];
}

interface Wanted {
  readonly allowed: readonly string[];
  readonly id: string | undefined;
}

// Of a thing with an id the projects that may have it are asked, because the thing itself does not tell.
async function isOfOne(client: Client, row: Row, { allowed, id }: Wanted): Promise<boolean> {
  if (id === undefined) return false;
  const noun = row.name.slice(0, row.name.indexOf("."));
  if (noun === "approvals") {
    const { path } = await client.call("approvals.get", { params: { id } });
    return allowed.includes(slugInPath(path) ?? "");
  }
  const owned = await Promise.all(allowed.map((slug) => idsOf(client, noun, slug).catch(() => [])));
  return owned.flat().includes(id);
}

async function idsOf(client: Client, noun: string, slug: string): Promise<readonly string[]> {
  const params = { slug };
  if (noun === "builds") return (await client.call("builds.list", { params })).builds.map(({ id }) => id);
  if (noun === "backups") return (await client.call("backups.list", { params })).backups.map(({ id }) => id);
  return [];
}

function refusal(allowed: readonly string[]): CliError {
  return usageError(
    "This server may not reach that.",
    `It was started for these projects alone: ${allowed.join(", ")}. Only they, and what belongs to them, can be named.`,
  );
}
