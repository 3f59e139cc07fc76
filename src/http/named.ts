import { nameOf, namesOrganization, type Row } from "../contract/table.ts";
import { Refused, type Caller, type NamedProject } from "../features/context.ts";
import type { Db, Tx } from "../store/database.ts";
import { finders, livingProject } from "./handlers.ts";

/** Finds the object that a request's path names, if the caller may see it; undefined when it is missing. */
export async function findNamed(
  db: Db | Tx,
  row: Row,
  caller: Caller,
  params: unknown,
): Promise<{ readonly id: string } | undefined> {
  const orgId = await organizationOf(db, row, caller, params);
  if (row.names === null || orgId === undefined) return undefined;
  return finders[row.names](db, { org_id: orgId }, nameOf(row, params) ?? "");
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
  return (await finders.organization(db, caller, (params as { readonly org: string }).org))?.id;
}
