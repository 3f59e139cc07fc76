import type { Query, Result } from "../../contract/routes.ts";
import { newId } from "../../kit/ids.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Caller, RefusalText } from "../context.ts";
import { selectEntries } from "./queries.ts";
import { formatEntryCursor, parseEntryCursor, presentEntry, type EntryRow } from "./rules.ts";

export {
  deleteOldChanges,
  deleteOldActivity,
  deleteOldBuilds,
  deleteOldDeployments,
  type HistoryRetention,
} from "./retention.ts";

/** A change and who made it. `detail` holds names and numbers, never the values of variables or other secrets. */
export interface Activity {
  readonly org_id: string;
  readonly project_id: string | null;
  readonly actor_token_id: string | null;
  readonly actor_name: string;
  /** For example `project.created`. */
  readonly action: string;
  readonly target: string | null;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** Records a change, in the transaction that makes it. */
export async function recordActivity(tx: Db | Tx, activity: Activity): Promise<void> {
  const row = { ...activity, id: newId("evt"), detail: JSON.stringify(activity.detail) };
  await tx.insertInto("activity").values(row).execute();
}

/** Something that the platform itself did or observed, such as a crash. */
export type PlatformEvent = Pick<Activity, "org_id" | "project_id" | "action"> &
  Partial<Pick<Activity, "target" | "detail">>;

/** Records an event of the platform, with `berth` as its actor. */
export async function recordEvent(db: Db | Tx, event: PlatformEvent): Promise<void> {
  await recordActivity(db, { target: null, detail: {}, ...event, actor_token_id: null, actor_name: "berth" });
}

/** A replica that ended and will be started again. */
export interface ReplicaCrash extends Pick<Activity, "org_id"> {
  readonly project_id: string;
  readonly deployment: number;
  readonly process: string;
  readonly replica: number;
  readonly out_of_memory: boolean;
  readonly exit_code: number | null;
  readonly restarts: number;
  readonly next_start_in_ms: number;
}

/** Records a crash. Metrics and checks count these events by the numbers in `detail`; `target` is for people. */
export async function recordCrash(db: Db | Tx, crash: ReplicaCrash): Promise<void> {
  const { org_id, project_id, out_of_memory, ...detail } = crash;
  await recordEvent(db, {
    org_id,
    project_id,
    action: out_of_memory ? "replica.out_of_memory" : "replica.crashed",
    target: `deployment ${crash.deployment}, ${crash.process === "web" ? "replica" : crash.process} ${crash.replica}`,
    detail,
  });
}

export interface Reading {
  readonly tx: Db | Tx;
  readonly caller: Pick<Caller, "org_id" | "project_ids">;
  readonly fail: (code: "invalid_request", more?: RefusalText) => never;
}

/** Returns a page of the activity in the caller's organization, or in one of its projects, newest first. Refuses a malformed cursor. */
export async function readEntries(
  ctx: Reading,
  of: { readonly project_id?: string },
  { limit, kind, cursor }: Query<"activity.list">,
): Promise<{ readonly entries: Result<"activity.list">["activity"]; readonly next_cursor: string | null }> {
  const before = cursor === undefined ? undefined : parseEntryCursor(cursor);
  if (cursor !== undefined && before === undefined)
    return ctx.fail("invalid_request", { error: "cursor: use a next_cursor of this list unchanged." });
  const { org_id, project_ids } = ctx.caller;
  const rows = await selectEntries(ctx.tx, { ...of, org_id, project_ids, kinds: kind, before, limit: limit + 1 });
  const shown = rows.slice(0, limit);
  const next_cursor = rows.length > limit ? formatEntryCursor(shown.at(-1) as EntryRow) : null;
  return { entries: shown.map(presentEntry), next_cursor };
}
