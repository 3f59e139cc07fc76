import { newId } from "../../kit/ids.ts";
import type { Db, Tx } from "../../store/database.ts";

/** A change that somebody made. `detail` holds names and numbers, never the values of variables or other secrets. */
export interface Activity {
  readonly org_id: string;
  readonly project_id: string | null;
  readonly actor_token_id: string | null;
  readonly actor_name: string;
  /** Such as `project.created`. */
  readonly action: string;
  readonly target: string | null;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** Writes a change down, in the transaction that makes it. */
export async function recordActivity(tx: Db | Tx, activity: Activity): Promise<void> {
  const row = { ...activity, id: newId("evt"), detail: JSON.stringify(activity.detail) };
  await tx.insertInto("activity").values(row).execute();
}

/** Something that the platform itself did or saw, such as a crash. */
export type PlatformEvent = Pick<Activity, "org_id" | "project_id" | "action"> &
  Partial<Pick<Activity, "target" | "detail">>;

/** Writes an event of the platform down. */
export async function recordEvent(db: Db | Tx, event: PlatformEvent): Promise<void> {
  await recordActivity(db, { target: null, detail: {}, ...event, actor_token_id: null, actor_name: "berth" });
}
