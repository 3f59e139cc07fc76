import type { Db, Tx } from "../../store/database.ts";
import { selectOrganization } from "./queries.ts";

/** The organization of this slug; undefined when there is none. For rows that only a platform admin may call. */
export async function findOrganization(db: Db | Tx, _: unknown, slug: string) {
  return selectOrganization(db, slug);
}
