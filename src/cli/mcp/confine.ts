import type { Client } from "../../contract/client.ts";
import { nameOf, type Row } from "../../contract/table.ts";
import { usageError, type CliError } from "../failures.ts";

/** Restricts calls to some of the organization's projects. */
export interface Confinement {
  /** Throws `CliError` if the call concerns anything outside them. */
  check(row: Row, params: Readonly<Record<string, string>>): Promise<void>;
  /** Returns the response without entries of other projects. */
  filter(row: Row, document: unknown): unknown;
}

/** Creates a confinement to these projects; null: no restriction. */
export function confine(client: Client, allowed: readonly string[] | null): Confinement {
  if (allowed === null) return { check: async () => {}, filter: (_, document) => document };
  return {
    async check(row, params) {
      if (row.access === "public" || row.name === "me.get" || row.name in lists) return;
      if (!(await isOfOne(client, row, { allowed, name: nameOf(row, params) }))) throw refusal(allowed);
    },
    filter: (row, document) => filterList(row, document, allowed),
  };
}

/** Lists that span several projects, and how to find the project of an entry. */
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

interface NamedItem {
  readonly allowed: readonly string[];
  readonly name: string | undefined;
}

// Whether an item belongs to an allowed project. A build or backup does not name its project, so the allowed projects' lists are searched.
async function isOfOne(client: Client, { names }: Row, { allowed, name: id }: NamedItem): Promise<boolean> {
  if (id === undefined) return false;
  switch (names) {
    case "project":
      return allowed.includes(id);
    case "approval": {
      const { path } = await client.call("approvals.get", { params: { id } });
      return allowed.includes(slugInPath(path) ?? "");
    }
    case "build":
    case "backup": {
      const owned = await Promise.all(allowed.map((slug) => idsOf(client, names, slug).catch(() => [])));
      return owned.flat().includes(id);
    }
    default:
      return false;
  }
}

async function idsOf(client: Client, names: "build" | "backup", slug: string): Promise<readonly string[]> {
  const params = { slug };
  if (names === "build") return (await client.call("builds.list", { params })).builds.map(({ id }) => id);
  return (await client.call("backups.list", { params })).backups.map(({ id }) => id);
}

function refusal(allowed: readonly string[]): CliError {
  return usageError(
    "This server may not reach that project.",
    `It was started for these projects only: ${allowed.join(", ")}. Calls can name only these and what belongs to them.`,
  );
}
