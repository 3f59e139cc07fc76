import { sql } from "kysely";
import type { Db, Tx } from "../../store/database.ts";
import type { CheckKey, CheckRow } from "./rules.ts";

// The number of the advisory lock, unique in this database: "watch" in ASCII.
const lockNumber = "512970878824";

/** Locks the check results: until the transaction ends, no other process can store any. */
export async function lockMonitoring(tx: Tx): Promise<void> {
  await sql`select pg_advisory_xact_lock(${sql.lit(lockNumber)})`.execute(tx);
}

const columns = [
  "name",
  "machine",
  "subject",
  "status",
  "detail",
  "hint",
  "since",
  "bad_since",
  "last_ok_at",
  "checked_at",
] as const;

/** Returns the stored rows of these checks, each on its machine. */
export async function checksOf(tx: Tx, checks: readonly Omit<CheckKey, "subject">[]): Promise<readonly CheckRow[]> {
  const [names, machines] = [checks.map(({ name }) => name), checks.map(({ machine }) => machine)];
  const { rows } = await sql<CheckRow>`
    select ${sql.join(columns.map((column) => sql.ref(column)))} from monitor_check
    where (name, machine) in (select * from unnest(${names}::text[], ${machines}::text[]))`.execute(tx);
  return rows;
}

/** Returns every row, in a stable order. */
export async function allChecks(db: Db | Tx): Promise<readonly CheckRow[]> {
  return db.selectFrom("monitor_check").select(columns).orderBy("name").orderBy("machine").orderBy("subject").execute();
}

export async function upsertChecks(tx: Tx, rows: readonly CheckRow[]): Promise<void> {
  if (rows.length === 0) return;
  await tx
    .insertInto("monitor_check")
    .values([...rows])
    .onConflict((on) =>
      on.columns(["name", "machine", "subject"]).doUpdateSet((of) => ({
        status: of.ref("excluded.status"),
        detail: of.ref("excluded.detail"),
        hint: of.ref("excluded.hint"),
        since: of.ref("excluded.since"),
        bad_since: of.ref("excluded.bad_since"),
        last_ok_at: of.ref("excluded.last_ok_at"),
        checked_at: of.ref("excluded.checked_at"),
      })),
    )
    .execute();
}

export async function deleteChecks(tx: Tx, keys: readonly CheckKey[]): Promise<void> {
  for (const { name, machine, subject } of keys) {
    const query = tx.deleteFrom("monitor_check").where("name", "=", name).where("machine", "=", machine);
    await query.where("subject", "=", subject).execute();
  }
}

/** Backdates the rows of a machine whose control plane has ended for good, so that they are deleted next. */
export async function retireMachine(db: Db, machine: string): Promise<void> {
  const longAgo = sql<string>`now() - interval '2 days'`;
  await db.updateTable("machine").set({ seen_at: longAgo }).where("name", "=", machine).execute();
  await db.updateTable("monitor_check").set({ checked_at: longAgo }).where("machine", "=", machine).execute();
}

/** Deletes machines that have not reported for a day and checks that have not run for a day; returns the deleted checks. */
export async function forgetMachines(tx: Tx): Promise<readonly CheckKey[]> {
  await tx
    .deleteFrom("machine")
    .where("seen_at", "<", sql<string>`now() - interval '1 day'`)
    .execute();
  return tx
    .deleteFrom("monitor_check")
    .where("checked_at", "<", sql<string>`now() - interval '1 day'`)
    .returning(["name", "machine", "subject"])
    .execute();
}
