import type { TenantLogin } from "../../ports/tenant-database.ts";
import { recordActivity } from "../activity/activity.ts";
import { Refused, type Caller, type Context, type Handlers, type Surroundings } from "../context.ts";
import { databaseOf, specOf } from "../database/database.ts";
import { livingProject } from "../projects/projects.ts";
import { cutCells, foundIn, nextOffset } from "./rules.ts";

export const data: Handlers<"data"> = {
  async tables(ctx, { params, query }) {
    const { login } = await enter(ctx, params.slug, query.database);
    return {
      async outcome() {
        const { tables, total } = foundIn(await ctx.world.ports.tenantDatabase.listTables(login, query), "read");
        const more = query.offset + tables.length < total;
        return { tables: [...tables], total, next_offset: nextOffset(query.offset, tables.length, more) };
      },
    };
  },

  async rows(ctx, { params, query }) {
    const { login } = await enter(ctx, params.slug, query.database);
    const { schema, table } = params;
    return {
      async outcome() {
        const found = foundIn(await ctx.world.ports.tenantDatabase.readRows(login, { schema, table }, query), "read");
        return {
          schema,
          name: table,
          kind: found.kind,
          columns: found.columns.map((column) => ({
            ...column,
            primary_key: found.primary_key?.includes(column.name) ?? false,
          })),
          primary_key: found.primary_key && [...found.primary_key],
          keys: found.keys.map((key) => [...key]),
          rows: found.rows.map(({ row }) => row),
          cut: cutCells(found.rows),
          total: found.total,
          estimated: found.estimated,
          next_offset: nextOffset(query.offset, found.rows.length, found.more),
        };
      },
    };
  },

  async insert(ctx, { params, body }) {
    const { login, project_id } = await enter(ctx, params.slug);
    const { schema, table } = params;
    const values = body.values as Readonly<Record<string, unknown>>;
    ctx.note({ silent: true });
    return {
      async outcome() {
        const looked = await ctx.world.ports.tenantDatabase.insertRow(login, { schema, table }, values);
        const { row, cut } = foundIn(looked, "write");
        await record(ctx, "data.inserted", { project_id, target: `${schema}.${table}`, columns: Object.keys(values) });
        return { row, cut: [...cut] };
      },
    };
  },

  async delete(ctx, { params, body }) {
    const { login, project_id } = await enter(ctx, params.slug);
    const { schema, table } = params;
    const key = body.key as Readonly<Record<string, unknown>>;
    ctx.note({ silent: true });
    return {
      async outcome() {
        foundIn(await ctx.world.ports.tenantDatabase.deleteRow(login, { schema, table }, key), "write");
        await record(ctx, "data.deleted", { project_id, target: `${schema}.${table}`, columns: Object.keys(key) });
        return undefined;
      },
    };
  },
};

type DataContext = Context<"data.tables"> | Context<"data.rows"> | Context<"data.insert"> | Context<"data.delete">;

/** The way into the project's database, or into a further one of its instance: what the role may not enter is missing. */
async function enter(
  ctx: DataContext,
  slug: string,
  database?: string,
): Promise<{ login: TenantLogin; project_id: string }> {
  const project = await livingProject(ctx, slug);
  const row = await databaseOf(ctx.tx, ctx.caller.org_id, project.id);
  if (row === undefined) return ctx.fail("no_database");
  const { port, socket_path } = row;
  if (port === null || socket_path === null)
    throw new Refused("unavailable", { error: "The database is still being made." });
  const spec = specOf(ctx.world.vault, row);
  return {
    project_id: project.id,
    login: { spec, port, socket_path, ...(database === undefined ? {} : { database }) },
  };
}

interface Change {
  readonly project_id: string;
  readonly target: string;
  readonly columns: readonly string[];
}

// After the change, because most of what can refuse it is in the project's own database, beyond our transaction.
async function record(
  ctx: { world: Surroundings; caller: Caller },
  action: string,
  { columns, ...change }: Change,
): Promise<void> {
  const { org_id, token_id: actor_token_id, token_name: actor_name } = ctx.caller;
  await recordActivity(ctx.world.db, { org_id, actor_token_id, actor_name, action, ...change, detail: { columns } });
}
