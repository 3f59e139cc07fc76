import type { Db, Tx } from "../../store/database.ts";

/** Returns the organization with this slug; undefined when there is none. Only for routes of platform admins. */
export async function findOrganization(db: Db | Tx, _: string, slug: string) {
  return db.selectFrom("organization").select("id").where("slug", "=", slug).executeTakeFirst();
}
