import { sql } from "kysely";
import type { Result } from "../../contract/routes.ts";
import { newId } from "../../kit/ids.ts";
import type { Columns, Db, Tx } from "../../store/database.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import type { Context } from "../context.ts";

/** Where a storage lists its backups of the platform, for a machine that knows nothing else: JSON of `ListedBackup[]`, newest first. */
export const backupListKey = "platform/backups.json";

/** A completed backup of the platform, as its storage lists it. */
export type ListedBackup = Readonly<
  Record<"id" | "taken_at" | "version" | "recipient" | "storage_key" | "sha256", string>
>;

const shown = [
  ...(["id", "origin", "status", "created_at", "finished_at", "taken_at", "version", "recipient"] as const),
  ...(["storage", "size_bytes", "sha256", "problem"] as const),
];

export async function listBackups({
  tx,
}: Pick<Context<"platform.backups">, "tx">): Promise<Result<"platform.backups">> {
  return { backups: await tx.selectFrom("platform_backup").select(shown).orderBy("id", "desc").execute() };
}

export async function createBackup(ctx: Context<"platform.back_up">): Promise<Result<"platform.back_up">> {
  if (ctx.caller.approval_mode && (await wouldDelete(ctx)))
    return ctx.fail("conflict", {
      error: "One more backup would take the place of an earlier one, which a token in approval mode may not delete.",
      hint: "Use the newest backup, or ask a human to make one.",
    });
  const id = await requestPlatformBackup(ctx.tx, ctx.platform.wakeups, "manual");
  if (id === undefined) return ctx.fail("operation_in_progress", underWay);
  ctx.note({ target: id });
  return ctx.tx.selectFrom("platform_backup").select(shown).where("id", "=", id).executeTakeFirstOrThrow();
}

const underWay = {
  error: "Another backup of the platform is under way.",
  hint: "`berth platform backups` shows when it ends.",
};

async function wouldDelete({ tx, platform }: Context<"platform.back_up">): Promise<boolean> {
  const { backups } = await listBackups({ tx });
  const manual = backups.filter(({ origin, status }) => origin === "manual" && status === "completed");
  return manual.length >= platform.settings.backups.retention.manual;
}

/** Requests a backup of the platform and returns its id; undefined while another one is under way. */
export async function requestPlatformBackup(
  db: Db | Tx,
  wakeups: Pick<Wakeups, "send">,
  origin: "manual" | "daily",
): Promise<string | undefined> {
  const id = newId("pbk");
  const running = sql.lit<"running">("running");
  const inserted = await db
    .insertInto("platform_backup")
    .values({ id, origin })
    .onConflict((on) => on.column("status").where("status", "=", running).doNothing())
    .executeTakeFirst();
  if (inserted.numInsertedOrUpdatedRows !== 1n) return undefined;
  await wakeups.send(db, "platform_backups");
  return id;
}

export type PlatformBackup = Columns<"platform_backup", (typeof shown)[number] | "attempts" | "storage_key">;

/** Returns when the platform's first organization was created; null before that. */
export async function platformSince(db: Db): Promise<string | null> {
  const row = await db
    .selectFrom("organization")
    .select("created_at")
    .orderBy("created_at")
    .limit(1)
    .executeTakeFirst();
  return row?.created_at ?? null;
}

/** Returns all backups of the platform, newest first. */
export function platformBackups(db: Db): Promise<PlatformBackup[]> {
  return db
    .selectFrom("platform_backup")
    .select([...shown, "attempts", "storage_key"])
    .orderBy("id", "desc")
    .execute();
}

/** Counts an attempt, and records where its file will be before its first byte is written. */
export async function beginAttempt(
  db: Db,
  id: string,
  place: { readonly storage: string; readonly storage_key: string },
): Promise<void> {
  const attempts = sql<number>`attempts + 1`;
  await db
    .updateTable("platform_backup")
    .set({ ...place, attempts })
    .where("id", "=", id)
    .execute();
}

type Made = { readonly size_bytes: number } & Record<"taken_at" | "version" | "recipient" | "sha256", string>;

export async function endPlatformBackup(
  db: Db,
  id: string,
  end:
    | { readonly status: "failed"; readonly problem: string }
    | ({ readonly status: "completed"; readonly problem: string | null } & Made),
): Promise<void> {
  const row = { ...end, finished_at: sql<string>`now()` };
  await db.updateTable("platform_backup").set(row).where("id", "=", id).execute();
}

/** Completes the backup that a restored database came from: its copy of the database shows it under way. */
export async function completeOwnBackup(db: Db, made: Made): Promise<void> {
  const own = (await platformBackups(db)).find(({ status }) => status === "running");
  if (own !== undefined) await endPlatformBackup(db, own.id, { status: "completed", problem: null, ...made });
}

export async function forgetPlatformBackup(db: Db, id: string): Promise<void> {
  await db.deleteFrom("platform_backup").where("id", "=", id).execute();
}

/** Returns whether a storage's file is being written by a backup of the platform. */
export async function isOfPlatformBackup(db: Db, key: string): Promise<boolean> {
  if (key === backupListKey) return true;
  return (await platformBackups(db)).some(({ status, storage_key }) => status === "running" && storage_key === key);
}

export async function knownRecipient(db: Db): Promise<string | null> {
  return (await platformBackups(db)).find(({ recipient }) => recipient !== null)?.recipient ?? null;
}

export function keptProjects(db: Db) {
  return db
    .selectFrom("project as p")
    .innerJoin("organization as o", "o.id", "p.org_id")
    .leftJoin("disk_use as u", "u.project_id", "p.id")
    .select(["p.id", "p.org_id", "p.number", sql<string>`o.slug || '/' || p.slug`.as("subject")])
    .select(sql<number>`case when p.storage then coalesce(u.storage_bytes, 0) else 0 end`.as("storage_bytes"))
    .select(sql<boolean>`exists (select from build as b where b.project_id = p.id)`.as("was_built"))
    .where("p.purged_at", "is", null)
    .orderBy("p.number")
    .execute();
}

export type KeptProject = Awaited<ReturnType<typeof keptProjects>>[number];
