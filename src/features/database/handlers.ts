import { awaitOutcome, type AwaitedOutcome } from "../await-outcome.ts";
import type { Context, Handlers, HandlerPlatform } from "../context.ts";
import type { ProjectKey } from "../projects/projects.ts";
import { partMissing, requestDatabase, specOf } from "./database.ts";
import { requestDownload, requestImport, requestTunnel, showOrOpen } from "./tunnels.ts";
import { databaseOf, retryDatabase, type DatabaseRow } from "./queries.ts";

export const database: Handlers<"database"> = {
  async get(ctx) {
    const row = await databaseOf(ctx.tx, ctx.project.org_id, ctx.project.id);
    if (row === undefined) return ctx.fail("no_database");
    return { outcome: () => present(ctx.platform, row) };
  },

  async create(ctx, { body }) {
    const { key: owner, slug: target } = ctx.project;
    const created = await requestDatabase(ctx.tx, ctx.platform.vault, owner);
    ctx.answer(created ? 201 : 200);
    const row = (await databaseOf(ctx.tx, owner.org_id, owner.project_id)) as DatabaseRow;
    const retry = !created && row.status === "failed";
    ctx.note({ target, silent: !created && !retry });
    const isMissing = row.status === "failed" && row.failure?.code === partMissing;
    if (body.start_empty === true && (!isMissing || ctx.caller.approval_mode)) return ctx.fail("conflict", notReplaced);
    if (isMissing && body.start_empty !== true) return ctx.fail("unavailable", textOf(row));
    if (retry) await retryDatabase(ctx.tx, owner.org_id, row.id, isMissing);
    await ctx.platform.wakeups.send(ctx.tx, "databases", owner.project_id);
    return { outcome: (signal) => provisioned(ctx, owner, { id: row.id, signal }) };
  },

  connect: (ctx, { body }) =>
    requestTunnel(ctx, {
      ...{ purpose: "session", format: null },
      ...{ database_name: body.database ?? null, branch: body.branch },
    }),
  dump: (ctx, { body }) =>
    body.backup_id === undefined
      ? requestTunnel(ctx, {
          ...{ purpose: "dump", format: body.format, encrypted: body.encrypted },
          ...{ database_name: body.database ?? null, branch: body.branch },
        })
      : requestDownload(ctx, { ...body, backup_id: body.backup_id }),
  import: (ctx, { body }) => requestImport(ctx, body.format),
  tunnel: (ctx, { params, query }) => showOrOpen(ctx, params.id, query.connection === "true"),
};

const notReplaced = {
  error: "Only a database whose data is missing can be replaced by an empty one, and not by a token in approval mode.",
  hint: "`berth db` shows its state.",
};

const textOf = ({ failure }: DatabaseRow) => ({
  error: failure?.summary ?? "The database could not be created.",
  hint: failure?.hint ?? "",
});

function provisioned(ctx: Context<"database.create">, owner: ProjectKey, awaited: AwaitedOutcome) {
  return awaitOutcome(ctx.platform.wakeups, awaited, async () => {
    const row = await databaseOf(ctx.platform.db, owner.org_id, owner.project_id);
    if (row?.status === "failed")
      return ctx.fail(row.failure?.code === "storage_full" ? "storage_full" : "unavailable", textOf(row));
    return row?.status === "ready" ? present(ctx.platform, row) : undefined;
  });
}

async function present(platform: HandlerPlatform, row: DatabaseRow) {
  const seen = await platform.ports.postgresHost
    .observe(specOf(platform.vault, row))
    .catch(() => ({ state: "stopped" as const }));
  return {
    status: row.status,
    engine: "postgresql" as const,
    engine_version: row.engine_version,
    size_bytes: seen.state === "running" ? seen.size_bytes : null,
    connections: seen.state === "running" ? seen.connections : null,
    created_at: row.created_at,
    failure: row.failure,
  };
}
