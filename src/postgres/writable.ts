import { setTimeout as sleep } from "node:timers/promises";
import { escapeIdentifier as name } from "pg";
import type { Client } from "pg";

// A session that is logging in has read its settings but is not in the list of sessions yet.
const loginMs = 500;

/**
 * Lets sessions write to the database again, or makes those that start from now on read-only and ends the others: what they have not
 * committed is rolled back.
 */
export async function setWritable(client: Client, database: string, isWritable: boolean): Promise<void> {
  const change = isWritable ? "RESET default_transaction_read_only" : "SET default_transaction_read_only = on";
  await client.query(`ALTER DATABASE ${name(database)} ${change}`);
  if (isWritable) return;
  const { rows } = await client.query<{ now: string }>("SELECT clock_timestamp()::text AS now");
  for (const pauseMs of [0, loginMs]) {
    await sleep(pauseMs);
    await client.query(
      "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid() AND backend_start <= $2",
      [database, rows[0]?.now],
    );
  }
}
