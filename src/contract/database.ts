import { z } from "zod";
import { backupId } from "./backups.ts";
import { branchName } from "./branches.ts";
import { failure } from "./failure.ts";
import { id, ofProject, slugParam, timestamp, row } from "./table.ts";
import { databaseStates, statesOf } from "./states.ts";

export const database = z.object({
  status: z.enum(statesOf(databaseStates)),
  engine: z.literal("postgresql"),
  engine_version: z.string().nullable(),
  size_bytes: z.number().int().nullable(),
  connections: z.number().int().nullable(),
  created_at: timestamp,
  failure: failure.pick({ summary: true, hint: true }).nullable(),
});

const tunnel = z.object({
  id: z.string(),
  /** `session`: PostgreSQL's own protocol for a client program. The others transfer a file. */
  purpose: z.enum(["session", "dump", "import"]),
  format: z.enum(["custom", "plain"]).nullable(),
  /** The database that it connects to; null for the live one. */
  database: z.string().nullable(),
  /** The branch of the database that it connects to, if it does. */
  branch: z.string().nullable(),
  /** The backup that a dump comes from; null for a dump of the database itself. */
  backup_id: id.nullable(),
  /** The file is sent as an age file, which only the platform's recovery key opens. */
  encrypted: z.boolean(),
  /** `waiting`: the token that requested it must open it within a minute. */
  status: z.enum(["waiting", "open", "closed"]),
  close_reason: z.string().nullable(),
  created_at: timestamp,
  closed_at: timestamp.nullable(),
});

const ofTunnel = {
  ...ofProject,
  may: "owner data:write",
  result: tunnel,
  success: [201],
} as const;

/** Another database of the project, such as a restored one. Defaults to the project's own. */
const databaseName = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,63}$/, "must be the name of a database")
  .optional();

const format = z.enum(["custom", "plain"]).default("custom");

export const rows = [
  row({
    ...ofProject,
    name: "database.get",
    request: "GET /v1/projects/:slug/database",
    may: "member database:read",
    result: database,
    errors: ["no_database"],
    waits: true,
    summary: "Show the project's database; credentials are never shown",
  }),
  row({
    ...ofProject,
    name: "database.create",
    request: "POST /v1/projects/:slug/database",
    may: "member database:write",
    body: z.strictObject({
      /** Creates a new, empty database in place of one whose data is missing from the data folder. */
      start_empty: z.boolean().optional(),
    }),
    result: database,
    success: [201, 200],
    errors: ["storage_full", "conflict"],
    activity: "database.created",
    waits: true,
    summary: "Give the project a PostgreSQL database; returns the existing database if there is one",
  }),
  row({
    ...ofTunnel,
    name: "database.connect",
    request: "POST /v1/projects/:slug/database/sessions",
    approval: true,
    body: z.strictObject({ database: databaseName, branch: branchName.optional() }),
    errors: ["no_database", "conflict"],
    activity: "database.session_requested",
    summary: "Request a tunnel for a PostgreSQL client, which has the rights of the project's own role",
  }),
  row({
    ...ofTunnel,
    name: "database.dump",
    request: "POST /v1/projects/:slug/database/dump",
    // With `backup_id`, exports the content of that backup instead of a database's present content.
    // With `encrypted`, sends it as an age file that only the platform's recovery key opens.
    body: z.strictObject({
      ...{ format, database: databaseName, branch: branchName.optional() },
      ...{ backup_id: backupId.optional(), encrypted: z.boolean().default(false) },
    }),
    errors: ["no_database", "conflict"],
    activity: "database.dump_requested",
    summary: "Request a tunnel that downloads a dump of the database or of a backup",
  }),
  row({
    ...ofTunnel,
    name: "database.import",
    request: "POST /v1/projects/:slug/database/import",
    approval: true,
    body: z.strictObject({ format }),
    errors: ["no_database", "conflict", "disk_limit_reached"],
    activity: "database.import_requested",
    summary: "Request a tunnel that uploads a dump into a new database; the live database is not changed",
  }),
  row({
    ...ofTunnel,
    name: "database.tunnel",
    request: "GET /v1/projects/:slug/database/tunnels/:id",
    params: slugParam.extend({ id: z.string().max(100) }),
    // `connection`: an additional connection for a client in an open session.
    query: z.object({ connection: z.enum(["true", "false"]).default("false") }),
    success: [200],
    errors: ["no_database", "conflict"],
    upgrades: true,
    summary: "Show a tunnel to the database; with an upgrade to a WebSocket, open it",
  }),
] as const;
