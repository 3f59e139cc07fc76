import type { Input, Context } from "../context.ts";
import type { Result } from "../../contract/routes.ts";
import { keptFolder } from "../../kit/folder-tar.ts";
import type { AwaitedOutcome } from "../await-outcome.ts";
import { requestOperation, restorableBackup } from "./backups.ts";
import { ended, refuse, said } from "./ended.ts";

/** Puts one path of a backup of files, or of files that were restored beside, into the live files. */
export async function restorePath(ctx: Context<"backups.restore_path">, { body }: Input<"backups.restore_path">) {
  const { path, folder = null, replace } = body;
  const backup = body.backup_id === undefined ? null : await filesBackup(ctx, body.backup_id);
  const wanted = { backup_id: backup?.id ?? null, kind: "restore", path, folder, replaces: replace } as const;
  const asked = await requestOperation(ctx.tx, ctx.platform.wakeups, { ...ctx.project.key, ...wanted });
  if (asked === undefined) return ctx.fail("operation_in_progress");
  ctx.note({
    ...{ target: backup?.id ?? folder ?? path, losesNothing: !replace },
    ...(backup === null ? {} : { resource: backup.id }),
    detail: { path, ...(backup === null ? { folder } : { taken_at: backup.created_at }) },
  });
  return { outcome: (signal: AbortSignal) => restored(ctx, { id: asked.id, signal }, path) };
}

export const noBackup = {
  error: "The project has no backup with this id.",
  hint: "`berth backups` lists the backups with their ids.",
};

async function filesBackup(ctx: Context<"backups.restore_path">, id: string) {
  const backup = await restorableBackup(ctx.tx, ctx.project.key, ctx.caller, id);
  if (backup === undefined) return ctx.fail("not_found", noBackup);
  if (backup.content !== "files" || backup.status !== "completed")
    return ctx.fail("conflict", {
      error: "Only a completed backup of the files in $STORAGE_DIR has paths to restore.",
    });
  return backup;
}

async function restored(
  ctx: Context<"backups.restore_path">,
  awaited: AwaitedOutcome,
  path: string,
): Promise<Result<"backups.restore_path">> {
  const operation = await ended(ctx, awaited);
  if (operation.problem_code === "backup_damaged") return ctx.fail("backup_damaged", said(operation));
  if (operation.problem_code === "refused") return ctx.fail("conflict", said(operation));
  if (operation.status === "failed") return refuse(ctx, operation);
  const kept_folder = keptFolder(operation.database_name ?? "");
  const { id: project_id, number: project_number } = ctx.project;
  const kept = `${kept_folder}/${path}`;
  const found = await ctx.platform.ports.runtime.statStored({ project_id, project_number }, kept);
  if (found === undefined) return { path, kept: null, kept_folder: null };
  return { path, kept, kept_folder: kept_folder.slice(kept_folder.indexOf("/") + 1) };
}
