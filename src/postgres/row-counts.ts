import type { Client } from "pg";
import type { CountOptions, TableCount } from "../ports/postgres-host.ts";

// Skips tables of extensions, which the extension recreates, and temporary tables, which belong to a session. Counts partitions, not their
// parents.
const tablesQuery = `
  SELECT format('%I.%I', n.nspname, c.relname) AS "table"
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
  ORDER BY 1`;

/** Counts each table's own rows in the connection's current transaction. Runs no code that the tables' owner wrote. */
export async function countRows(client: Client, options: CountOptions): Promise<TableCount[]> {
  const { rows } = await client.query<{ table: string }>(tablesQuery);
  const counts: TableCount[] = [];
  for (const { table } of rows) {
    options.signal.throwIfAborted();
    const counted = await client.query<{ rows: string }>(`SELECT count(*) AS rows FROM ONLY ${table}`);
    counts.push({ table, rows: Number(counted.rows[0]?.rows) });
    options.onCounted?.({ counted: counts.length, tables: rows.length });
  }
  return counts;
}
