import type { Client } from "pg";

/** Terminates the role's session with this process id, if there is one. */
export async function endSession(client: Client, role: string, processId: number): Promise<void> {
  const statement = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND usename = $2";
  await client.query(statement, [processId, role]);
}
