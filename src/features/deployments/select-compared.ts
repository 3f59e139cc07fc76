import type { Db, Tx } from "../../store/database.ts";
import { shown } from "./queries.ts";

/** A deployment to compare. */
export type ComparedRow = NonNullable<Awaited<ReturnType<typeof selectCompared>>>;

interface Wanted {
  readonly org_id: string;
  readonly project_id: string;
  /** Undefined: the newest deployment, or the newest before `servedBefore` that went live. */
  readonly number: number | undefined;
  readonly servedBefore?: number;
}

export async function selectCompared(db: Db | Tx, { org_id, project_id, number, servedBefore }: Wanted) {
  let query = db
    .selectFrom("deployment as d")
    .innerJoin("build as b", "b.id", "d.build_id")
    .select(shown.map((name) => `d.${name}` as const))
    .select(["d.port", "d.health_path", "d.sealed_variables", "b.message"])
    .where("d.org_id", "=", org_id)
    .where("d.project_id", "=", project_id);
  if (number !== undefined) query = query.where("d.number", "=", number);
  else if (servedBefore !== undefined)
    query = query.where("d.number", "<", servedBefore).where("d.activated_at", "is not", null);
  return query.orderBy("d.number", "desc").limit(1).executeTakeFirst();
}
