import { sql, type RawBuilder, type SqlBool } from "kysely";

/** What a caller reaches: an organization, or some of its projects. */
export interface Reach {
  readonly org_id: string;
  /** Null: all. */
  readonly project_ids: readonly string[] | null;
}

export function isWithin(column: string, { project_ids }: Pick<Reach, "project_ids">): RawBuilder<SqlBool> {
  return project_ids === null ? sql`true` : sql`${sql.ref(column)} = any(${[...project_ids]}::text[])`;
}
