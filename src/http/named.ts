import { nameOf, namesOrganization, type Row } from "../contract/table.ts";
import { Refused, type Caller, type NamedProject } from "../features/context.ts";
import type { Db, Tx } from "../store/database.ts";
import { livingProject } from "../features/projects/projects.ts";
import { ownTokenIds } from "../features/tokens/tokens.ts";
import { finders, type Found } from "./handlers.ts";

/** Finds the object that a request's path names, if the caller may see it; undefined when it is missing. */
export async function findNamed(db: Db | Tx, row: Row, caller: Caller, params: unknown): Promise<Found | undefined> {
  const orgId = await organizationOf(db, row, caller, params);
  if (row.names === null || orgId === undefined) return undefined;
  const found = await finders[row.names](db, orgId, nameOf(row, params) ?? "");
  return found !== undefined && (await isWithin(db, row, caller, found)) ? found : undefined;
}

/** Refuses a token that is limited to projects all other objects exactly like missing ones, before anything could tell them apart. */
export async function requireWithinProjects(db: Db | Tx, row: Row, caller: Caller, params: unknown): Promise<void> {
  if (caller.project_ids === null || row.names === null) return;
  if ((await findNamed(db, row, caller, params)) === undefined) throw new Refused("not_found");
}

async function isWithin(db: Db | Tx, { names }: Row, caller: Caller, found: Found): Promise<boolean> {
  const { project_ids, token_id } = caller;
  if (project_ids === null || project_ids.includes(found.project_id ?? found.id)) return true;
  // Tokens, and the keys that they registered, belong to nobody's projects, but to who made them.
  if (names === "token") return (await ownTokenIds(db, caller)).has(found.id);
  if (names === "key") return (await ownTokenIds(db, caller)).has(found.created_by ?? "");
  // A token waits for the decisions about its own requests, whatever they concern.
  return found.token_id === token_id;
}

/** Finds the project that a request's path names. Refuses the request when the project is missing or deleted. */
export async function findNamedProject(db: Db | Tx, row: Row, caller: Caller, params: unknown): Promise<NamedProject> {
  const org_id = await organizationOf(db, row, caller, params);
  if (org_id === undefined) throw new Refused("not_found");
  const project = await livingProject(db, org_id, nameOf(row, params) ?? "");
  return { ...project, key: { org_id, project_id: project.id } };
}

/** Returns the caller's organization or, on operator routes, the one that the path names. */
async function organizationOf(db: Db | Tx, row: Row, caller: Caller, params: unknown): Promise<string | undefined> {
  if (!namesOrganization(row)) return caller.org_id;
  return (await finders.organization(db, caller.org_id, (params as { readonly org: string }).org))?.id;
}
