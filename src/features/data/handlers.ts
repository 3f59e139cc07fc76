import type { RouteName } from "../../contract/routes.ts";
import { DatabaseWorkFailed } from "../../ports/postgres-host.ts";
import type { JsonObject, TenantLogin, Looked, ShownRow, Unable } from "../../ports/tenant-database.ts";
import type { Context, Handlers, RefusalText } from "../context.ts";
import { hasDatabase } from "../backups/backups.ts";
import { requireRoomInDatabase } from "../disk/disk.ts";
import { awaken, databaseOf, noBranch, serverOf, specOf } from "../database/database.ts";

export const data: Handlers<"data"> = {
  async tables(ctx, { query }) {
    const login = await enter(ctx, query);
    return {
      async outcome() {
        const { tables, total } = foundIn(
          ctx,
          await ctx.platform.ports.tenantDatabase.listTables(login, withSearch(query)),
          "read",
        );
        const more = query.offset + tables.length < total;
        return { tables: [...tables], total, next_offset: nextOffset(query.offset, tables.length, more) };
      },
    };
  },

  async rows(ctx, { params, query }) {
    const login = await enter(ctx, query);
    const { schema, table } = params;
    return {
      async outcome() {
        const found = foundIn(
          ctx,
          await ctx.platform.ports.tenantDatabase.readRows(login, { schema, table }, withSearch(query)),
          "read",
        );
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
          versions: [...found.versions],
          cut: cutCells(found.rows),
          total: found.total,
          estimated: found.estimated,
          next_offset: nextOffset(query.offset, found.rows.length, found.more),
        };
      },
    };
  },

  async query(ctx, { body }) {
    const login = await enter(ctx, body);
    const { postgresHost, tenantDatabase } = ctx.platform.ports;
    return {
      async outcome() {
        const database = login.database ?? login.spec.database_name;
        const reader = await postgresHost.readerLogin(login.spec, database).catch((error: unknown) => {
          if (!(error instanceof DatabaseWorkFailed)) throw error;
          if (error.reason === "refused") return ctx.fail("not_found");
          return ctx.fail("unavailable", { error: error.message, foreign: true });
        });
        const looked = await tenantDatabase.query({ ...login, spec: { ...login.spec, ...reader } }, body.sql);
        const { columns, rows, cut, more } = foundIn(ctx, looked, "query");
        return {
          columns: [...columns],
          rows: rows.map((row) => [...row]),
          cut: cut.map((each) => ({ row: each.row, columns: [...each.columns] })),
          more,
        };
      },
    };
  },

  async connections(ctx, { query }) {
    const login = await enter(ctx, query);
    const list = () => ctx.platform.ports.tenantDatabase.listConnections(login);
    return {
      outcome: async () => {
        const { connections, limit, more } = foundIn(ctx, await list(), "read");
        return { connections: connections.map((each) => ({ ...each })), limit, more };
      },
    };
  },

  async end_connection(ctx, { params, query }) {
    const login = await enter(ctx, query);
    const pid = Number(params.pid);
    ctx.note({ target: params.pid });
    return {
      changesLate: true,
      async outcome() {
        foundIn(ctx, await ctx.platform.ports.tenantDatabase.endConnection(login, pid), "write");
        return undefined;
      },
    };
  },

  async statements(ctx, { query }) {
    const { spec, database = spec.database_name } = await enter(ctx, query);
    const { postgresHost } = ctx.platform.ports;
    return {
      async outcome() {
        const found = await postgresHost.statements(spec, { database, sort: query.sort });
        return { collected: found !== null, statements: (found ?? []).map((each) => ({ ...each })) };
      },
    };
  },

  async extensions(ctx, { query }) {
    const login = await enter(ctx, query);
    const list = () => ctx.platform.ports.tenantDatabase.listExtensions(login);
    return {
      outcome: async () => ({ extensions: foundIn(ctx, await list(), "read").map((each) => ({ ...each })) }),
    };
  },

  async insert(ctx, { params, body }) {
    const login = await enter(ctx);
    await requireRoomInDatabase(ctx);
    const { schema, table } = params;
    const values = body.values as JsonObject;
    ctx.note({ target: `${schema}.${table}`, detail: { columns: Object.keys(values) } });
    return {
      changesLate: true,
      async outcome() {
        const looked = await ctx.platform.ports.tenantDatabase.insertRow(login, { schema, table }, values);
        const { row, cut } = foundIn(ctx, looked, "write");
        return { row, cut: [...cut] };
      },
    };
  },

  async update(ctx, { params, body }) {
    const login = await enter(ctx);
    await requireRoomInDatabase(ctx);
    const { schema, table } = params;
    const { tenantDatabase } = ctx.platform.ports;
    const { key, values } = body as { key: JsonObject; values: JsonObject };
    ctx.note({ target: `${schema}.${table}`, detail: { columns: Object.keys(values) } });
    return {
      changesLate: true,
      async look() {
        foundIn(ctx, await tenantDatabase.findRow(login, { schema, table }, key), "read");
      },
      async outcome() {
        const change = { key, values, version: body.version };
        const { row, cut } = foundIn(ctx, await tenantDatabase.updateRow(login, { schema, table }, change), "write");
        return { row, cut: [...cut] };
      },
    };
  },

  async delete(ctx, { params, body }) {
    const login = await enter(ctx);
    const { schema, table } = params;
    const { tenantDatabase } = ctx.platform.ports;
    const key = body.key as JsonObject;
    ctx.note({ target: `${schema}.${table}`, detail: { columns: Object.keys(key) } });
    return {
      changesLate: true,
      async look() {
        foundIn(ctx, await tenantDatabase.findRow(login, { schema, table }, key), "read");
      },
      async outcome() {
        foundIn(ctx, await tenantDatabase.deleteRow(login, { schema, table }, key), "write");
        return undefined;
      },
    };
  },
};

type DataContext = {
  [N in Extract<RouteName, `data.${string}`>]: Context<N>;
}[Extract<RouteName, `data.${string}`>];

interface Chosen {
  readonly database?: string | undefined;
  readonly branch?: string | undefined;
}

/** Returns the login to the project's database, or to another one or a branch of it; any other name is missing. */
async function enter(ctx: DataContext, { database, branch }: Chosen = {}): Promise<TenantLogin> {
  const { platform, project } = ctx;
  const row = await awaken(platform, await databaseOf(ctx.tx, project.org_id, project.id, branch));
  if (row === undefined) return branch === undefined ? ctx.fail("no_database") : ctx.fail("not_found", noBranch);
  if (database !== undefined && !(await hasDatabase(ctx.tx, row, database))) return ctx.fail("not_found");
  const server = serverOf(row);
  if (server === null)
    return ctx.fail("unavailable", { error: "The database is still being created. Try again in a moment." });
  const spec = specOf(platform.vault, row);
  const tls = platform.ports.postgresHost.tlsOf(spec.id);
  return { spec, tls, ...server, ...(database === undefined ? {} : { database }) };
}

// Forms submit an empty search field as an empty string.
function withSearch<Q extends { readonly q?: string | undefined }>(query: Q): Q {
  return { ...query, q: query.q || undefined };
}

type Code = "not_found" | "invalid_request" | "conflict" | "query_timeout" | "unavailable";

/** How the caller refuses a request. */
interface Asking {
  readonly fail: (code: Code, more?: RefusalText) => never;
}

/** Returns what was found; refuses when nothing was. */
function foundIn<T>(asking: Asking, looked: Looked<T>, did: keyof typeof hints): T {
  if (looked.outcome === "done") return looked.found;
  return refuse(asking, looked, did);
}

function refuse({ fail }: Asking, unable: Unable, did: keyof typeof hints): never {
  switch (unable.outcome) {
    case "missing":
      return fail("not_found");
    case "invalid": {
      const { field: path, problem: message } = unable;
      return fail("invalid_request", { error: `${path}: ${message}`, details: [{ path, message }], foreign: true });
    }
    case "conflict":
      return fail("conflict", { error: unable.problem, hint: unable.hint ?? "", foreign: true });
    case "timeout":
      return fail("query_timeout", { hint: hints[did] });
    case "unavailable":
      return fail("unavailable", { error: unable.problem });
  }
}

const hints = {
  read: "Sort by a column with an index, search less, or skip fewer rows.",
  query: "Read fewer rows, or filter by a column with an index. EXPLAIN shows the query plan.",
  write: "Check whether the change was made before you try again.",
} as const;

function nextOffset(offset: number, shown: number, more: boolean): number | null {
  return more && shown > 0 ? offset + shown : null;
}

/** Returns which cells of a page were cut, by row index. */
function cutCells(rows: readonly ShownRow[]): { row: number; columns: string[] }[] {
  return rows.flatMap(({ cut }, row) => (cut.length === 0 ? [] : [{ row, columns: [...cut] }]));
}
