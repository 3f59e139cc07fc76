import { missingScope } from "../../contract/access.ts";
import { route, type Result } from "../../contract/routes.ts";
import { bytesText } from "../../kit/bytes-text.ts";
import { restoredFolder } from "../../kit/folder-tar.ts";
import { instantOf } from "../../kit/instant.ts";
import { pageOf } from "../../kit/page.ts";
import { missingDatabase } from "../../kit/part-missing.ts";
import { awaitOutcome, type AwaitedOutcome } from "../await-outcome.ts";
import { Refused, type Context, type Handlers } from "../context.ts";
import { diskUseOf, requireRoomInDatabase } from "../disk/disk.ts";
import { databaseOf, partMissing } from "../database/database.ts";
import * as deployments from "../deployments/deployments.ts";
import { markVariablesChanged } from "../env/env.ts";
import { setArchived } from "./archive-queries.ts";
import { outsideText } from "./archive-rules.ts";
import { archiveOf, restorableAt, showArchive } from "./archive.ts";
import { drillOf, drillsOf } from "./drills.ts";
import { requestBackup, requestDrill, requestOperation, restorableBackup } from "./backups.ts";
import { ended, refuse, said } from "./ended.ts";
import { hasRunning, operationOf } from "./operations.ts";
import * as queries from "./queries.ts";
import { noBackup, restorePath } from "./restore-path.ts";
import { insertRestored, lockLiveName, markDropped, restoredDatabases, setLiveDatabase } from "./restored.ts";

// Wait briefly for the first error: a backup that cannot start, for example on a full disk, fails before its first byte.
const beginning = { atMostMs: 1000, pollEveryMs: 50 };
const mostRestored = 5;

export const backups: Handlers<"backups"> = {
  async create(ctx, { body: { content } }) {
    if (content === "database") await requireDatabase(ctx);
    if (ctx.caller.approval_mode && (await makesRetentionDelete(ctx, content)))
      return ctx.fail("conflict", wouldDelete);
    const asked = await requestBackup(ctx.tx, ctx.platform.wakeups, { ...ctx.project.key, content, origin: "manual" });
    if (asked.outcome === "busy") return ctx.fail("operation_in_progress");
    ctx.note({ target: asked.id });
    return { outcome: (signal) => begun(ctx, asked, signal) };
  },

  async list(ctx, { query }) {
    const rows = await queries.listBackups(ctx.tx, ctx.project.org_id, ctx.project.id, query);
    const { shown, next_cursor } = pageOf(rows, query.limit, ({ id }) => id);
    return { backups: shown.map(present), next_cursor };
  },

  async get(ctx, { params }) {
    const row = await queries.selectBackup(ctx.tx, ctx.caller.org_id, params.id);
    return row === undefined ? ctx.fail("not_found") : presentWhole(row);
  },

  async restore(ctx, { body }) {
    if (body.at !== undefined) return restoreMoment(ctx, new Date(instantOf(body.at, ctx.now)));
    if (body.before_deployment !== undefined) return restoreMoment(ctx, await before(ctx, body.before_deployment));
    if (body.backup_id === undefined) await requireDatabase(ctx);
    const backup = await chosen(ctx, body.backup_id);
    if (backup.content === "files") await requireRoomForFiles(ctx, backup.size_bytes ?? 0);
    else {
      await requireDatabase(ctx);
      await requireRoom(ctx);
      await requireRoomInDatabase(ctx);
    }
    const asked = await requestOperation(ctx.tx, ctx.platform.wakeups, {
      ...ctx.project.key,
      backup_id: backup.id,
      kind: "restore",
    });
    if (asked === undefined) return ctx.fail("operation_in_progress");
    ctx.note({ target: backup.id, resource: backup.id, detail: { taken_at: backup.created_at } });
    return { outcome: (signal) => restored(ctx, { id: asked.id, signal }, backup) };
  },

  restore_path: restorePath,

  async verify(ctx, { params }) {
    const { org_id } = ctx.caller;
    const backup = await queries.selectBackup(ctx.tx, org_id, params.id);
    if (backup === undefined) return ctx.fail("not_found");
    if (backup.status !== "completed")
      return ctx.fail("conflict", {
        error: "Only a completed backup can be verified.",
        hint: "Wait until it is completed, or verify another one.",
      });
    const owner = { org_id, project_id: backup.project_id };
    if (backup.content === "database" && (await databaseOf(ctx.tx, org_id, backup.project_id)) === undefined)
      return ctx.fail("no_database");
    const asked = await requestOperation(ctx.tx, ctx.platform.wakeups, {
      ...owner,
      backup_id: backup.id,
      kind: "verify",
    });
    if (asked === undefined) return ctx.fail("operation_in_progress");
    ctx.note({ project_id: backup.project_id, target: backup.id });
    return { outcome: (signal) => verified(ctx, { id: asked.id, signal }, backup.id) };
  },

  archive: showArchive,

  async set_archive(ctx, { body: { enabled } }) {
    const row = await databaseOf(ctx.tx, ctx.project.org_id, ctx.project.id);
    if (row === undefined) return ctx.fail("no_database");
    if (row.archived !== enabled) {
      await setArchived(ctx.tx, ctx.project.key, enabled);
      await ctx.platform.wakeups.send(ctx.tx, "archives", ctx.project.id);
    }
    ctx.note({ target: enabled ? "on" : "off", silent: row.archived === enabled });
    return showArchive(ctx);
  },

  async drills(ctx) {
    return { drills: await drillsOf(ctx.tx, ctx.project.key) };
  },

  async drill(ctx, { params }) {
    return (await drillOf(ctx.tx, ctx.project.key, params.drill)) ?? ctx.fail("not_found");
  },

  async run_drill(ctx) {
    await requireDatabase(ctx);
    const { key } = ctx.project;
    const { isOpen } = await archiveOf(ctx.tx, key);
    if (!isOpen) return ctx.fail("target_outside_window", { error: outsideText([]) });
    const asked = await requestDrill(ctx.tx, ctx.platform.wakeups, { ...key, origin: "manual" });
    if (asked === undefined) return ctx.fail("operation_in_progress");
    ctx.note({ target: asked.id });
    return {
      async outcome(signal) {
        await ended(ctx, { id: asked.id, signal });
        return (await drillOf(ctx.platform.db, key, asked.id)) ?? ctx.fail("not_found");
      },
    };
  },

  async restored(ctx) {
    await requireDatabase(ctx);
    return { databases: [...(await restoredDatabases(ctx.tx, ctx.project.org_id, ctx.project.id))] };
  },

  async promote(ctx, { body }) {
    const { key } = ctx.project;
    const previous = await lockIdleDatabase(ctx, body.database);
    await insertRestored(ctx.tx, { ...key, name: previous, backup_id: null });
    await markVariablesChanged(ctx.platform.wakeups, ctx.tx, key);
    await deployments.keepDatabase(ctx.tx, key, previous);
    await setLiveDatabase(ctx.tx, key, body.database);
    await ctx.platform.wakeups.send(ctx.tx, "databases", key.project_id);
    const restart = await (body.deployment === undefined
      ? deployments.restartDeployment(ctx.platform, ctx.tx, key, "variables")
      : goBack(ctx, body.deployment));
    if (restart.outcome === "in_progress") return ctx.fail("deploy_in_progress");
    ctx.note({ target: body.database, detail: { previous, deployment: body.deployment } });
    const unhealthy = body.deployment === undefined ? "restart_failed" : "previous_unhealthy";
    return {
      async outcome(signal) {
        // Without an active deployment, or in a suspended organization, nothing runs that could use either database.
        if (restart.outcome === "made")
          await deployments.deploymentOutcome(ctx, restart.id, { signal, unhealthy }).catch((error: unknown) => {
            throw error instanceof Refused ? stillUsing(previous, error) : error;
          });
        return { database: body.database, previous };
      },
    };
  },

  async drop(ctx, { params }) {
    const { key } = ctx.project;
    await lockIdleDatabase(ctx, params.database);
    if (await deployments.isDatabaseUsed(ctx.tx, key, params.database)) return ctx.fail("conflict", stillUsed);
    await markDropped(ctx.tx, key, params.database);
    await ctx.platform.wakeups.send(ctx.tx, "backups", key.project_id);
    ctx.note({ target: params.database });
  },
};

/** Rolls back to a deployment, for code that fits only the promoted data; refuses where `deployments.rollback` would. */
async function goBack(ctx: Context<"backups.promote">, number: number) {
  const missing = missingScope(ctx.caller, route("deployments.rollback"));
  if (missing !== undefined) return ctx.fail("insufficient_scope", { error: `The token lacks the scope ${missing}.` });
  const made = await deployments.rollBack(ctx.platform, ctx.tx, ctx.project.key, number);
  if (made.outcome === "nothing") return ctx.fail("nothing_to_roll_back", deployments.textOfNothing(number));
  return made.outcome === "org_suspended" ? ctx.fail(made.outcome) : made;
}

function stillUsing(previous: string, { code, more }: Refused): Refused {
  return new Refused(code, {
    ...more,
    error:
      `The application still uses ${previous}, because it could not be restarted with the promoted database. ${more.error ?? ""}`.trim(),
    hint: `Its next restart or deploy uses the promoted database. To undo the promotion: berth backups promote ${previous}`,
  });
}

const wouldDelete = {
  error:
    "One more backup would make room for itself: Berth would delete an earlier one, which a token in approval mode may not cause.",
  hint: "Use the newest backup, or ask a human to make one.",
};

/** Returns whether the project has as many manual backups as are kept, or no room for one of the database's size. */
async function makesRetentionDelete(
  { tx, project: { key }, platform }: Context<"backups.create">,
  content: "database" | "files",
): Promise<boolean> {
  const { disk, backups: settings } = platform.settings;
  const { use, limits: own } = await diskUseOf(tx, key, disk);
  const kept = await queries.keptBackups(tx, { ...key, content });
  if (kept.manual >= settings.retention.manual) return true;
  // A backup of files never deletes another one for its size: it is refused instead.
  return (
    content === "database" &&
    kept.local_bytes + Math.max(use.database_bytes ?? 0, kept.largest_bytes) > own.backups_bytes
  );
}

const stillUsed = {
  error: "The application still uses this database: it was not yet restarted with the live one.",
  hint: "Check the project's deployments. If the restart failed, fix the application and deploy it.",
};

type DatabaseContext =
  | Context<"backups.create">
  | Context<"backups.run_drill">
  | Context<"backups.restore">
  | Context<"backups.restored">;

async function requireDatabase(ctx: DatabaseContext): Promise<void> {
  const row = await databaseOf(ctx.tx, ctx.project.org_id, ctx.project.id);
  if (row === undefined) return ctx.fail("no_database");
  if (row.failure?.code === partMissing) throw missingDatabase(row.id);
}

/** Locks and returns the name of the live database; refuses unless the additional database exists and no operation is running. */
async function lockIdleDatabase(ctx: Context<"backups.promote"> | Context<"backups.drop">, database: string) {
  const { org_id, project_id } = ctx.project.key;
  const live = await lockLiveName(ctx.tx, org_id, project_id);
  if (live === undefined) return ctx.fail("no_database");
  const further = await restoredDatabases(ctx.tx, org_id, project_id);
  if (!further.some((each) => each.database === database)) return ctx.fail("not_found");
  if (await hasRunning(ctx.tx, org_id, project_id)) return ctx.fail("operation_in_progress");
  return live;
}

async function chosen(ctx: Context<"backups.restore">, id: string | undefined) {
  const { org_id, id: projectId } = ctx.project;
  const backup =
    id === undefined
      ? await queries.newestCompleted(ctx.tx, org_id, projectId)
      : ((await restorableBackup(ctx.tx, ctx.project.key, ctx.caller, id)) ?? ctx.fail("not_found", noBackup));
  if (backup?.status !== "completed") {
    const error =
      id === undefined ? "The project has no completed backup yet." : "Only a completed backup can be restored.";
    return ctx.fail("conflict", { error });
  }
  return backup;
}

async function before(ctx: Context<"backups.restore">, number: number): Promise<Date> {
  const { org_id, id } = ctx.project;
  const createdAt = await deployments.deploymentCreatedAt(ctx.tx, { org_id, project_id: id }, number);
  if (createdAt !== undefined) return new Date(createdAt);
  return ctx.fail("not_found", {
    error: `The project has no deployment ${number}.`,
    hint: "The list of deployments has their numbers.",
  });
}

/** Restores the database to a moment, which may be so recent that its log is still to be stored. */
async function restoreMoment(ctx: Context<"backups.restore">, at: Date) {
  await requireDatabase(ctx);
  const outside = await restorableAt(ctx.tx, ctx.project.key, at);
  if (outside !== undefined) return ctx.fail("target_outside_window", { error: outside });
  await requireRoom(ctx);
  await requireRoomInDatabase(ctx);
  const shows = at.toISOString();
  const wanted = { ...ctx.project.key, backup_id: null, kind: "restore", restore_to: shows } as const;
  const asked = await requestOperation(ctx.tx, ctx.platform.wakeups, wanted);
  if (asked === undefined) return ctx.fail("operation_in_progress");
  ctx.note({ target: shows, detail: { taken_at: shows, restore_to: shows } });
  return { outcome: (signal: AbortSignal) => restored(ctx, { id: asked.id, signal }, { shows }) };
}

async function requireRoom(ctx: Context<"backups.restore">): Promise<void> {
  const further = await restoredDatabases(ctx.tx, ctx.project.org_id, ctx.project.id);
  if (further.length < mostRestored) return;
  return ctx.fail("conflict", {
    error: `The project already has ${further.length} databases beside the live one.`,
    hint: "Drop one that is no longer needed: DELETE /v1/projects/:slug/database/restored/:database.",
  });
}

async function requireRoomForFiles(ctx: Context<"backups.restore">, bytes: number): Promise<void> {
  const { use, limits } = await diskUseOf(ctx.tx, ctx.project.key, ctx.platform.settings.disk);
  if ((use.storage_bytes ?? 0) + bytes <= limits.storage_bytes) return;
  return ctx.fail("disk_limit_reached", {
    error: `The restored files take ${bytesText(bytes)} beside the ${bytesText(use.storage_bytes ?? 0)} of the live ones, and the project may have ${bytesText(limits.storage_bytes)}.`,
    hint: "Download the backup instead, or ask the operator for a higher limit.",
  });
}

async function begun(
  ctx: Context<"backups.create">,
  asked: { id: string; operation_id: string },
  signal: AbortSignal,
): Promise<Result<"backups.create">> {
  const { operation_id: id } = asked;
  const endMs = performance.now() + beginning.atMostMs;
  const { operation } = await awaitOutcome(
    ctx.platform.wakeups,
    { id, signal, pollEveryMs: beginning.pollEveryMs },
    async () => {
      const operation = await operationOf(ctx.platform.db, ctx.caller.org_id, id);
      const isWaiting = operation?.status === "running" && operation.phase === "waiting";
      return isWaiting && performance.now() < endMs ? undefined : { operation };
    },
  );
  if (operation?.problem_code === "storage_full") return refuse(ctx, operation);
  const row = await queries.selectBackup(ctx.platform.db, ctx.caller.org_id, asked.id);
  return { id: asked.id, status: row?.status ?? "running" };
}

const restoreCodes = ["backup_damaged", "wal_missing", "target_outside_window"] as const;

async function restored(
  ctx: Context<"backups.restore">,
  awaited: AwaitedOutcome,
  from: Pick<queries.WholeBackupRow, "id" | "content"> | { readonly shows: string },
): Promise<Result<"backups.restore">> {
  const operation = await ended(ctx, awaited);
  const code = restoreCodes.find((each) => each === operation.problem_code);
  if (code !== undefined) return ctx.fail(code, said(operation));
  if (operation.problem_code === "refused") return ctx.fail("conflict", said(operation));
  if (operation.status === "failed") return refuse(ctx, operation);
  const name = operation.database_name;
  if ("shows" in from) return { database: name, folder: null, backup_id: null, shows: from.shows };
  return from.content === "files"
    ? { database: null, folder: `${restoredFolder}/${name}`, backup_id: from.id, shows: null }
    : { database: name, folder: null, backup_id: from.id, shows: null };
}

async function verified(
  ctx: Context<"backups.verify">,
  awaited: AwaitedOutcome,
  backupId: string,
): Promise<Result<"backups.verify">> {
  const operation = await ended(ctx, awaited);
  if (operation.status === "failed") return refuse(ctx, operation);
  const row = await queries.selectBackup(ctx.platform.db, ctx.caller.org_id, backupId);
  return {
    status: row?.verification ?? "failed",
    tables: row?.comparison ?? [],
    reason: row?.verification_problem ?? null,
  };
}

function present(row: queries.BackupRow): Result<"backups.list">["backups"][number] {
  const { kind, phase, bytes_done, tables_done, tables_total, problem_code, problem, verification, verified_at } = row;
  const isWorkedOn = kind !== null && phase !== null && bytes_done !== null && tables_done !== null;
  return {
    ...row,
    operation: isWorkedOn ? { kind, phase, bytes_done, tables_done, tables_total } : null,
    failure: problem_code === null ? null : { code: problem_code, summary: problem ?? "" },
    verification: verification === null || verified_at === null ? null : { status: verification, verified_at },
  };
}

function presentWhole(row: queries.WholeBackupRow): Result<"backups.get"> {
  const { verification, ...shown } = present(row);
  const more = { tables: row.comparison ?? [], reason: row.verification_problem };
  return {
    ...shown,
    tables: row.row_counts,
    verification: verification === null ? null : { ...verification, ...more },
  };
}
