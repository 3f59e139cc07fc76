import { sql } from "kysely";
import type { Columns, Db, Tx } from "../../store/database.ts";

const columns = [
  "organization.id",
  "organization.slug",
  "organization.name",
  "organization.max_projects",
  "organization.created_at",
  "organization.suspended_at",
] as const;

const projects = sql<number>`(select count(*) from project p where p.org_id = organization.id and p.deleted_at is null and p.preview_of is null)`;

const shown = (db: Db | Tx) => db.selectFrom("organization").select([...columns, projects.as("projects")]);

export async function listOrganizations(db: Db | Tx) {
  return shown(db).orderBy("organization.id", "desc").execute();
}

export type OrganizationRow = Awaited<ReturnType<typeof listOrganizations>>[number];

export async function showOrganization(db: Db | Tx, id: string): Promise<OrganizationRow> {
  return shown(db).where("organization.id", "=", id).executeTakeFirstOrThrow();
}

export interface NewOrganization extends Columns<"organization", "id" | "slug" | "name" | "max_projects"> {
  readonly created_at: Date;
}

/** Inserts an organization; returns false when the slug is taken. */
export async function insertOrganization(tx: Tx, organization: NewOrganization): Promise<boolean> {
  const done = await tx
    .insertInto("organization")
    .values(organization)
    .onConflict((on) => on.column("slug").doNothing())
    .executeTakeFirst();
  return done.numInsertedOrUpdatedRows === 1n;
}

/** Locks the organization until the transaction ends. */
export async function lockOrganization(tx: Tx, slug: string) {
  const query = tx.selectFrom("organization").select(["id", "slug", "suspended_at"]).where("slug", "=", slug);
  return query.forNoKeyUpdate().executeTakeFirst();
}

export async function updateOrganization(
  tx: Tx,
  id: string,
  change: { readonly name?: string; readonly max_projects?: number },
): Promise<void> {
  await tx.updateTable("organization").set(change).where("id", "=", id).execute();
}

export async function setSuspended(tx: Tx, id: string, suspendedAt: Date | null): Promise<void> {
  await tx.updateTable("organization").set({ suspended_at: suspendedAt }).where("id", "=", id).execute();
}
