import type { Result } from "../../contract/routes.ts";
import { recordEvent } from "../activity/activity.ts";
import type { Context, Handlers } from "../context.ts";
import { diskUseOf } from "./disk.ts";
import { saveStorageSize, selectBackupsBytes, setOwnLimits } from "./queries.ts";

export const disk: Handlers<"disk"> = {
  get: (ctx) => present(ctx),

  async remove(ctx, { body: { path } }) {
    const { key, number, slug } = ctx.project;
    const owner = { project_id: key.project_id, project_number: number };
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
