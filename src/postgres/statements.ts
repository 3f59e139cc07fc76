import type { Client } from "pg";
import type { DatabaseSpec, StatementsQuery, StatementUse } from "../ports/postgres-host.ts";

const listed = 50;
const letters = 500;
// PostgreSQL reads the file of all texts at once.
const mostTextBytes = 16 * 1024 * 1024;

/** What a server loads to count statements. Only texts without values are kept, and none of commands such as ALTER ROLE. */
export const statementSettings = {
  shared_preload_libraries: "pg_stat_statements",
  "pg_stat_statements.max": "500",
  "pg_stat_statements.track": "top",
  "pg_stat_statements.track_utility": "off",
};

/** Reads what the server counted, in a database no project can enter. `mayCreate`: the server is the project's alone. */
export async function readStatements(
  client: Client,
  spec: DatabaseSpec,
  { database, sort, mayCreate }: StatementsQuery & { readonly mayCreate: boolean },
): Promise<readonly StatementUse[] | null> {
  try {
    if (mayCreate) {
      await limitStatementTexts(client);
      if (!(await createView(client))) return null;
    }
    const { rows } = await client.query<StatementUse>(statement(sort), [spec.role_name, database]);
    return rows;
  } catch (error) {
    return isNotCollected(error);
  }
}

const orders = { total: "total_exec_time", mean: "mean_exec_time", most: "max_exec_time" } as const;

// Berth's own reads run as the project's role, too; they name every function with its schema.
const statement = (sort: StatementsQuery["sort"]) => `
  SELECT left(s.query, ${letters}) AS query, s.calls::float8 AS calls, s.rows::float8 AS rows, s.total_exec_time AS total_ms, s.mean_exec_time AS mean_ms,
    s.max_exec_time AS most_ms
  FROM public.pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid JOIN pg_roles r ON r.oid = s.userid
  WHERE d.datname = $2 AND r.rolname = $1 AND s.calls > 0 AND s.query NOT LIKE '%pg\\_catalog.%' AND s.query <> 'SELECT' ORDER BY s.${orders[sort]} DESC LIMIT ${listed}`;

/** Forgets what the server counted once its texts are very long: they are on disk, beside the databases. */
export async function limitStatementTexts(client: Client): Promise<void> {
  const { rows } = await client.query<{ bytes: string | null }>(
    "SELECT (pg_stat_file('pg_stat_tmp/pgss_query_texts.stat', true)).size AS bytes",
  );
  if (Number(rows[0]?.bytes) <= mostTextBytes) return;
  if (await createView(client)) await client.query("SELECT public.pg_stat_statements_reset()");
}

/** Creates the view if missing. Returns whether the server counts. */
async function createView(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ counts: boolean }>(
    "SELECT current_setting('shared_preload_libraries') LIKE '%pg_stat_statements%' AS counts",
  );
  if (rows[0]?.counts !== true) return false;
  await client.query("CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public");
  return true;
}

/** Returns null for a server without the view, or that does not load the library; throws any other error. */
function isNotCollected(error: unknown): null {
  if (["42P01", "55000", "58P01", "0A000"].includes((error as { code?: string }).code ?? "")) return null;
  throw error;
}
