import { setTimeout as sleep } from "node:timers/promises";
import { withConnection, type ServerConnection } from "../../postgres/connection.ts";
import type { HeldLock } from "../../ports/postgres-host.ts";

const everyMs = 25;

/** Modes that forbid writing; the first forbids reading, too. */
const modes = ["AccessExclusiveLock", "ExclusiveLock", "ShareRowExclusiveLock", "ShareLock"];

const query = `SELECT l.virtualtransaction AS transaction, l.mode, format('%I.%I', n.nspname, c.relname) AS table,
    CASE a.state WHEN 'active' THEN a.query ELSE '' END AS statement
  FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_stat_activity a ON a.pid = l.pid
  WHERE l.locktype = 'relation' AND l.granted AND l.mode = ANY ($1) AND l.pid <> pg_backend_pid() AND c.relkind = 'r'
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')`;

interface Sampled {
  readonly transaction: string;
  readonly mode: string;
  readonly table: string;
  /** Empty while the session waits for its client. */
  readonly statement: string;
}

interface Held extends Pick<HeldLock, "table" | "blocks"> {
  readonly from: number;
  to: number;
  /** In how many samples each statement ran. */
  readonly statements: Map<string, number>;
}

/** Samples the locks of one database every 25 ms, in a session of its own, until `end`. */
export async function watchLocks(connection: ServerConnection): Promise<{ end(): Promise<readonly HeldLock[]> }> {
  const seen = new Map<string, Held>();
  const ended = new AbortController();
  const watching = withConnection(connection, async (client) => {
    while (!ended.signal.aborted) {
      const from = performance.now();
      const { rows } = await client.query<Sampled>(query, [modes]);
      for (const row of rows) note(seen, row, from);
      await sleep(everyMs, undefined, { signal: ended.signal }).catch(() => {});
    }
  });
  // A command that drops its database ends the session; the report then has what was seen before.
  const over = watching.catch(() => {});
  return {
    async end() {
      ended.abort();
      await over;
      return [...seen.values()].map(({ table, blocks, from, to, statements }) => {
        const [longest] = [...statements].toSorted(([, a], [, b]) => b - a);
        return { table, blocks, seconds: (to - from) / 1000, statement: longest?.[0] ?? null };
      });
    },
  };
}

/** A session's next transaction holds locks of its own. */
function note(seen: Map<string, Held>, { transaction, mode, table, statement }: Sampled, from: number): void {
  const key = `${transaction} ${mode} ${table}`;
  const held = seen.get(key) ?? {
    ...{ table, blocks: mode === modes[0] ? "reads" : "writes", from, to: from },
    statements: new Map<string, number>(),
  };
  held.to = performance.now();
  if (statement !== "") held.statements.set(statement, (held.statements.get(statement) ?? 0) + 1);
  seen.set(key, held as Held);
}
