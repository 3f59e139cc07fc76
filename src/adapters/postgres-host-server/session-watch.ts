import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "pg";
import { readingMemoryBytes } from "../../postgres/reader-role.ts";
import { withConnection, type ServerConnection } from "../../postgres/connection.ts";

const everyMs = 50;

// Linux's own account of a process: its memory without the buffers that all sessions share. Empty on other systems.
const endGreedy = `
  WITH watched AS MATERIALIZED (
    SELECT a.pid, substring(pg_read_file('/proc/' || a.pid || '/status', 0, 4096, true) FROM 'RssAnon:\\s+(\\d+) kB')::bigint AS kib
    FROM pg_stat_activity a JOIN unnest($1::int[], $2::text[]) AS given (pid, role) ON given.pid = a.pid AND given.role = a.usename)
  SELECT pid, pg_terminate_backend(pid) FROM watched WHERE kib * 1024 > $3`;

/** Watches sessions of a server whose processes belong to another machine or user; it has a connection of its own only while it watches one. */
export function createSessionWatch(superuser: () => Promise<ServerConnection>) {
  const watched = new Map<number, { readonly role: string; hasEnded: boolean }>();
  let isRunning = false;
  // A session learns of its end before the statement that ends it answers.
  let looking: Promise<void> = Promise.resolve();

  async function look(client: Client): Promise<void> {
    while (watched.size > 0) {
      const roles = [...watched.values()].map(({ role }) => role);
      const found = client.query<{ pid: number }>(endGreedy, [[...watched.keys()], roles, readingMemoryBytes]);
      looking = found.then(({ rows }) => rows.forEach(({ pid }) => markEnded(pid))).catch(() => {});
      await found;
      await looking;
      await sleep(everyMs);
    }
  }
  function markEnded(pid: number): void {
    const session = watched.get(pid);
    if (session !== undefined) session.hasEnded = true;
  }
  async function run(): Promise<void> {
    while (watched.size > 0) {
      // A lost connection or a switch to the standby: the next one watches on.
      await superuser()
        .then((connection) => withConnection(connection, look))
        .catch(() => sleep(everyMs));
    }
    isRunning = false;
  }
  return {
    /** Ends the session when it takes more memory than a reading statement may. The returned function ends the watch; resolves with whether it did. */
    start(role: string, processId: number) {
      const session = { role, hasEnded: false };
      watched.set(processId, session);
      if (!isRunning) {
        isRunning = true;
        void run();
      }
      return async () => {
        await looking;
        if (watched.get(processId) === session) watched.delete(processId);
        return session.hasEnded;
      };
    },
  };
}
