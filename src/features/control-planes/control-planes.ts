import { sql } from "kysely";
import type { Db, Tx } from "../../store/database.ts";

/** A Berth process as it reports itself. */
export interface ControlPlane {
  /** The name of its machine, as in the platform's status. */
  readonly name: string;
  /** The process's identity in leases. */
  readonly owner: string;
  readonly roles: readonly string[];
  /** The URL of its control port, for other processes. */
  readonly url: string;
}

/** Records that a control plane is alive, and deletes those silent for a day. */
export async function saveControlPlane(db: Db, { roles, ...plane }: ControlPlane): Promise<void> {
  const row = { ...plane, roles: [...roles], seen_at: sql<string>`now()` };
  await db
    .insertInto("control_plane")
    .values(row)
    .onConflict((on) => on.column("name").doUpdateSet(row))
    .execute();
  await db
    .deleteFrom("control_plane")
    .where("seen_at", "<", sql<string>`now() - interval '1 day'`)
    .execute();
}

/** Removes a stopped control plane, so that no requests go there, unless another process has taken over its name. */
export async function removeControlPlane(db: Db, { name, owner }: ControlPlane): Promise<void> {
  await db.deleteFrom("control_plane").where("name", "=", name).where("owner", "=", owner).execute();
}

/** Returns the control planes that reported within the last 10 seconds. */
export async function liveControlPlanes(db: Db | Tx) {
  return db
    .selectFrom("control_plane")
    .select(["name", "roles", "url"])
    .where("seen_at", ">", sql<string>`now() - interval '10 seconds'`)
    .orderBy("name")
    .execute();
}

const primaryFact = "primary";

/** The control plane that holds repositories, applications, databases and logs. */
export interface Primary {
  /** Identifies its machine and data folder, as in the rows of what runs there. */
  readonly machine: string;
  /** Its name in the platform's status. */
  readonly name: string;
  readonly ssh_host_key: string;
}

export async function findPrimary(db: Db): Promise<Primary | undefined> {
  const row = await db.selectFrom("platform_fact").select("value").where("key", "=", primaryFact).executeTakeFirst();
  return row?.value as unknown as Primary | undefined;
}

/** Records this machine as the primary, unless another machine already is; returns that machine's name. */
export async function claimPrimary(db: Db, primary: Primary, replaces: boolean): Promise<string | undefined> {
  const value = JSON.stringify(primary);
  const { rows } = await sql`
    insert into platform_fact (key, value) values (${primaryFact}, ${value}::jsonb)
    on conflict (key) do update set value = excluded.value, updated_at = now()
    where ${replaces} or platform_fact.value ->> 'machine' = excluded.value ->> 'machine' returning 1`.execute(db);
  return rows.length > 0 ? undefined : (await findPrimary(db))?.name;
}
