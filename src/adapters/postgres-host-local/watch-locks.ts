import { setTimeout as sleep } from "node:timers/promises";
import { withConnection, type ServerConnection } from "../../postgres/connection.ts";
import type { HeldLock } from "../../ports/postgres-host.ts";

const everyMs = 25;

/** Modes that forbid writing; the first forbids reading, too. */
const modes = ["AccessExclusiveLock", "ExclusiveLock", "ShareRowExclusiveLock", "ShareLock"];

const query = `SELECT l.pid, l.mode, format('%I.%I', n.nspname, c.relname) AS table
  FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE l.locktype = 'relation' AND l.granted AND l.mode = ANY ($1) AND l.pid <> pg_backend_pid() AND c.relkind = 'r'
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')`;

/** Samples the locks of one database every 25 ms, in a session of its own, until `end`. */
export async function watchLocks(connection: ServerConnection): Promise<{ end(): Promise<readonly HeldLock[]> }> {
  const seen = new Map<string, { table: string; blocks: HeldLock["blocks"]; from: number; to: number }>();
  const ended = new AbortController();
  const watching = withConnection(connection, async (client) => {
    while (!ended.signal.aborted) {
      const at = performance.now();
      const { rows } = await client.query<{ pid: number; mode: string; table: string }>(query, [modes]);
      for (const { pid, mode, table } of rows) {
        const blocks = mode === modes[0] ? "reads" : "writes";
        const known = seen.get(`${pid} ${mode} ${table}`);
        if (known === undefined)
          seen.set(`${pid} ${mode} ${table}`, { table, blocks, from: at, to: performance.now() });
        else known.to = performance.now();
      }
      await sleep(everyMs, undefined, { signal: ended.signal }).catch(() => {});
    }
  });
  // A command that drops its database ends the session; the report then has what was seen before.
  const over = watching.catch(() => {});
  return {
    async end() {
      ended.abort();
      await over;
      return [...seen.values()].map(({ table, blocks, from, to }) => ({ table, blocks, seconds: (to - from) / 1000 }));
    },
  };
}
