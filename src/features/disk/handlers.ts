import { limits } from "../../contract/limits.ts";
import type { Result } from "../../contract/routes.ts";
import { missingStorage } from "../../kit/part-missing.ts";
import { recordEvent } from "../activity/activity.ts";
import * as backups from "../backups/backups.ts";
import type { Context, Handlers } from "../context.ts";
import { diskUseOf } from "./disk.ts";
import { ownerOf, writeFile } from "./write-file.ts";
import { saveStorageSize, selectBackupsBytes, setOwnLimits, storageOf } from "./queries.ts";

export const disk: Handlers<"disk"> = {
  get: (ctx) => present(ctx),

  async files(ctx, { query: { path = "", cursor = 0, limit, backup } }) {
    const place = { path, offset: cursor, count: limit + 1 };
    const found =
      backup === undefined
        ? await ctx.platform.ports.runtime.listStored(ownerOf(ctx.project), place)
        : await inSnapshot(ctx, backup, (snapshot) => snapshot.list(place));
    if (found === undefined && path === "" && backup === undefined) return emptyStorage(ctx);
    if (found === undefined) return ctx.fail("not_found", noSuch("folder", path, backup));
    const next_cursor = found.length > limit ? `${cursor + limit}` : null;
    return { files: found.slice(0, limit), next_cursor };
  },

  async read(ctx, { query: { path, offset, backup } }) {
    const count = limits.stored_file_bytes;
    const place = { path, offset, count };
    const found =
      backup === undefined
        ? await ctx.platform.ports.runtime.readStored(ownerOf(ctx.project), place)
        : await inSnapshot(ctx, backup, (snapshot) => snapshot.read(place));
    if (found === undefined) {
      if (backup === undefined) await emptyStorage(ctx);
      return ctx.fail("not_found", noSuch("file", path, backup));
    }
    return { base64: found.toString("base64"), next_offset: found.length < count ? null : offset + count };
  },

  write: writeFile,

  async remove(ctx, { body: { path } }) {
    const { key, slug } = ctx.project;
    const owner = ownerOf(ctx.project);
    ctx.note({ target: slug, detail: { path } });
    return {
      async outcome(signal) {
        const { ports, db } = ctx.platform;
        if (!(await ports.runtime.removeStored(owner, path, signal)))
          return ctx.fail("not_found", { error: `There is no ${path} in the storage folder.` });
        await saveStorageSize(db, key.project_id, await ports.runtime.storageBytes(owner));
        return present({ ...ctx, tx: db });
      },
    };
  },

  async limits(ctx, { body }) {
    const { org_id, slug: target, key } = ctx.project;
    const { storage_bytes, database_bytes, images_bytes, backups_bytes } = body;
    await setOwnLimits(ctx.tx, key, {
      ...(storage_bytes === undefined ? {} : { storage_limit_bytes: storage_bytes }),
      ...(database_bytes === undefined ? {} : { database_limit_bytes: database_bytes }),
      ...(images_bytes === undefined ? {} : { images_limit_bytes: images_bytes }),
      ...(backups_bytes === undefined ? {} : { backups_limit_bytes: backups_bytes }),
    });
    if (org_id !== ctx.caller.org_id)
      await recordEvent(ctx.tx, { ...key, action: "project.disk_limits_changed", target, detail: body });
    ctx.note({ target, detail: body });
    return present(ctx);
  },
};

const noSuch = (kind: string, path: string, backup: string | undefined) => ({
  error: `There is no ${kind} ${path} in the ${backup === undefined ? "storage folder" : "backup"}.`,
  hint: "Links are not followed.",
});

type Looking = Context<"disk.files"> | Context<"disk.read">;

/** Looks into a backup of the project's files, or of a purged project's of the same organization. */
async function inSnapshot<T>(ctx: Looking, id: string, look: (snapshot: backups.Snapshot) => Promise<T>): Promise<T> {
  const { tx, caller, project, platform, signal } = ctx;
  const found = await backups.restorableBackup(tx, project.key, caller, id);
  if (found === undefined) return ctx.fail("not_found", { error: "The project has no backup with this id." });
  const backup = await backups.storedBackup(tx, caller.org_id, id);
  if (backup?.content !== "files")
    return ctx.fail("conflict", { error: "Only a completed backup of the files in $STORAGE_DIR can be looked into." });
  try {
    return await look(await backups.openSnapshot(platform.ports.storages, backup, signal));
  } catch (error) {
    if (error instanceof backups.SnapshotClosed)
      return ctx.fail(error.isBusy ? "unavailable" : "conflict", { error: error.message });
    if (error instanceof backups.ArchiveDamaged) return ctx.fail("backup_damaged", { error: error.message });
    throw error;
  }
}

/** Throws when the folder should be there: it may lie on a disk that is away. */
async function emptyStorage(ctx: Looking): Promise<Result<"disk.files">> {
  const { tx, project, platform } = ctx;
  const { has_stored_files } = await storageOf(tx, project.id);
  if (has_stored_files && !(await platform.ports.runtime.hasStorage(ownerOf(project))))
    throw missingStorage(project.id);
  return { files: [], next_cursor: null };
}

type Presenting = Pick<Context<"disk.get"> | Context<"disk.limits">, "tx" | "project" | "platform">;

async function present({ tx, project, platform }: Presenting): Promise<Result<"disk.get">> {
  const { use, limits } = await diskUseOf(tx, project.key, platform.settings.disk);
  return {
    storage: { used_bytes: use.storage_bytes, limit_bytes: limits.storage_bytes, access: use.storage_access },
    database: {
      used_bytes: use.database_bytes,
      limit_bytes: limits.database_bytes,
      access: use.database_access,
      reopens_at: use.database_reopens_at,
    },
    images: { used_bytes: use.images_bytes, limit_bytes: limits.images_bytes },
    backups: { used_bytes: await selectBackupsBytes(tx, project.key), limit_bytes: limits.backups_bytes },
    measured_at: use.measured_at,
  };
}
