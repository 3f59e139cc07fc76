import { sql } from "kysely";
import type { Db, Tx } from "../../store/database.ts";

/** A process of Berth as it reports itself. */
export interface ControlPlane {
  /** Of its machine, as the platform's status calls it. */
  readonly name: string;
  /** As in leases. */
  readonly owner: string;
  readonly roles: readonly string[];
  /** Where other processes reach its control port. */
  readonly url: string;
}

/** Writes down that a control plane lives, and forgets those that are silent for a day. */
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

/** One that has ended: requests no longer go there, and no other process has taken its name meanwhile. */
export async function removeControlPlane(db: Db, { name, owner }: ControlPlane): Promise<void> {
  await db.deleteFrom("control_plane").where("name", "=", name).where("owner", "=", owner).execute();
}

/** The control planes that were seen in the last 10 seconds. */
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
  /** Its machine and data folder, as in the rows of what runs there. */
  readonly machine: string;
  /** Its name in the platform's status. */
  readonly name: string;
  /** The fingerprint of the SSH host key of git. */
  readonly ssh_host_key: string;
}

export async function findPrimary(db: Db): Promise<Primary | undefined> {
  const row = await db.selectFrom("platform_fact").select("value").where("key", "=", primaryFact).executeTakeFirst();
  return row?.value as unknown as Primary | undefined;
}

/** Stores the primary unless another machine is it, whose name it returns. */
export async function claimPrimary(db: Db, primary: Primary, replaces: boolean): Promise<string | undefined> {
  const value = JSON.stringify(primary);
  const { rows } = await sql`
    insert into platform_fact (key, value) values (${primaryFact}, ${value}::jsonb)
    on conflict (key) do update set value = excluded.value, updated_at = now()
    where ${replaces} or platform_fact.value ->> 'machine' = excluded.value ->> 'machine' returning 1`.execute(db);
  return rows.length > 0 ? undefined : (await findPrimary(db))?.name;
}
