import type { TablesPage, TablesQuery } from "../../ports/tenant-database.ts";
import { kindOf, visible } from "./catalogue.ts";
import type { Session } from "./session.ts";

type Sizes = "exact" | "estimated";

/** Returns a page of the tables. Sizes are exact unless a table is locked, such as by a migration. */
export async function listTables(session: Session, query: TablesQuery): Promise<TablesPage> {
  try {
    return await list(session, query, "exact");
  } catch (error) {
    if ((error as { code?: string }).code !== "55P03") throw error;
    await session.query("ROLLBACK");
    return list(session, query, "estimated");
  }
}

async function list(session: Session, query: TablesQuery, sizes: Sizes): Promise<TablesPage> {
  const values = [query.q ?? null, String(query.limit), String(query.offset)];
  const [found] = await session.query<{ total: number; tables: TablesPage["tables"] | null }>(
    statement(query, sizes),
    values,
  );
  return { total: found?.total ?? 0, tables: found?.tables ?? [] };
}

// The functions in the select list run after LIMIT, only for one page's tables, unless the list is sorted by them.
function statement({ sort, dir }: TablesQuery, sizes: Sizes): string {
  const order = `${sort} ${dir === "desc" ? "DESC" : "ASC"} NULLS LAST, schema, name`;
  return `WITH relation AS (
      SELECT c.oid, c.relkind, c.reltuples, c.relpages, c.reltoastrelid, n.nspname::pg_catalog.text AS schema, c.relname::pg_catalog.text AS name, ${kindOf} AS kind
      FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE ${visible} AND ($1::pg_catalog.text IS NULL
        OR pg_catalog.strpos(pg_catalog.lower(pg_catalog.concat(n.nspname, '.', c.relname)), pg_catalog.lower($1)) > 0)
    ), page AS (
      SELECT schema, name, kind, (${rows}) AS estimated_rows, (${sizes === "exact" ? exactSize : roughSize}) AS size_bytes
      FROM relation c ORDER BY ${order} LIMIT $2::pg_catalog.int8 OFFSET $3::pg_catalog.int8
    ) SELECT (SELECT pg_catalog.count(*) FROM relation)::pg_catalog.int4 AS total, (SELECT pg_catalog.json_agg(page ORDER BY ${order}) FROM page) AS tables`;
}

const rowsOf = (table: string) => `CASE WHEN pg_catalog.pg_stat_get_live_tuples(${table}.oid) > 0
  THEN pg_catalog.pg_stat_get_live_tuples(${table}.oid) ELSE GREATEST(${table}.reltuples, 0)::pg_catalog.int8 END`;

const leaves = (
  what: string,
) => `SELECT pg_catalog.sum(${what})::pg_catalog.int8 FROM pg_catalog.pg_partition_tree(c.oid) leaf
  JOIN pg_catalog.pg_class l ON l.oid = leaf.relid WHERE leaf.isleaf AND l.relkind = 'r'`;

const rows = `CASE WHEN c.relkind IN ('r', 'm') THEN ${rowsOf("c")} WHEN c.relkind = 'p' THEN COALESCE((${leaves(rowsOf("l"))}), 0) END`;

const exactSize = `CASE WHEN c.relkind IN ('r', 'm') THEN pg_catalog.pg_total_relation_size(c.oid)
  WHEN c.relkind = 'p' THEN COALESCE((${leaves("pg_catalog.pg_total_relation_size(l.oid)")}), 0) END`;

// Uses the sizes that vacuum and analyze recorded last, which needs no lock on the table.
const pagesOf = (
  table: string,
) => `(SELECT pg_catalog.sum(x.relpages) FROM pg_catalog.pg_class x WHERE x.oid IN (${table}.oid, ${table}.reltoastrelid)
    OR x.oid IN (SELECT i.indexrelid FROM pg_catalog.pg_index i WHERE i.indrelid = ${table}.oid)) * pg_catalog.current_setting('block_size')::pg_catalog.int8`;

const roughSize = `CASE WHEN c.relkind IN ('r', 'm') THEN ${pagesOf("c")} WHEN c.relkind = 'p' THEN COALESCE((${leaves(pagesOf("l"))}), 0) END`;
