import { limits } from "./limits.ts";
import { z } from "zod";
import {
  id,
  idCursor,
  insideStorage,
  keptFiles,
  liveFile,
  instant,
  pageQuery,
  nextCursor,
  ofProject,
  slugParam,
  timestamp,
  row,
} from "./table.ts";
import { backupStates, statesOf } from "./states.ts";

const status = z.enum(statesOf(backupStates));
const verdict = z.enum(["verified", "mismatch", "failed"]);
const count = z.number().int();

/** The operation in progress on a backup: creation, restore or verification. */
const operation = z.object({
  kind: z.enum(["backup", "restore", "verify"]),
  phase: z.enum(["waiting", "dumping", "storing", "checking", "restoring", "counting", "cleaning"]),
  bytes_done: count,
  tables_done: count,
  tables_total: count.nullable(),
});

const comparison = z.object({
  table: z.string(),
  expected: count,
  actual: count.nullable(),
});

/** What a backup contains: the project's database, or the files in `$STORAGE_DIR`. */
const content = z.enum(["database", "files"]);

const backupSummary = z.object({
  id,
  content,
  status,
  origin: z.enum(["manual", "daily", "final", "release"]),
  created_at: timestamp,
  finished_at: timestamp.nullable(),
  size_bytes: count.nullable(),
  sha256: z.string().nullable(),
  engine_version: z.string().nullable(),
  storage: z.string().nullable(),
  verification: z.object({ status: verdict, verified_at: timestamp }).nullable(),
  operation: operation.nullable(),
  failure: z.object({ code: z.string(), summary: z.string() }).nullable(),
});

const backup = backupSummary.extend({
  tables: z
    .array(z.object({ table: z.string(), rows: count }))
    .readonly()
    .nullable(),
  verification: z
    .object({
      status: verdict,
      verified_at: timestamp,
      tables: z.array(comparison).readonly(),
      reason: z.string().nullable(),
    })
    .nullable(),
});

const databaseName = z.string().max(63);
// The id is a query parameter of SQL, and PostgreSQL's text type can't hold NUL.
const visible = /^[\x21-\x7e]+$/;
export const backupId = id.regex(visible, "must be the id of a backup");
const furtherDatabase = z.object({
  database: databaseName,
  backup_id: id.nullable(),
  /** The moment that it shows, if it was restored to one. */
  shows: timestamp.nullable(),
  created_at: timestamp,
});

const archive = z.object({
  /** `unavailable`: the server is the operator's own. `starting`: the first copy is being made. `behind`: see `reason`. */
  status: z.enum(["off", "unavailable", "starting", "healthy", "behind"]),
  reason: z.string().nullable(),
  /** The spans in which every moment can be restored, oldest first; what lies between two of them is a gap. */
  windows: z.array(z.object({ from: timestamp, to: timestamp })).readonly(),
  gaps: z.array(z.object({ from: timestamp, to: timestamp, reason: z.string() })).readonly(),
  stored_bytes: count,
  retention_days: count,
});
const idParam = z.object({ id });

const sha256 = z.string();

/** What a drill restored, and what it was compared with. */
const evidence = z.object({
  started_at: timestamp,
  finished_at: timestamp,
  /** The moment asked for, and the last commit before it; null: none since the copy. */
  asked_for: timestamp,
  reached: timestamp.nullable(),
  database: databaseName,
  engine_version: z.string(),
  berth_version: z.string(),
  storage: z.string(),
  /** The file of the copy in the storage, and its checksum. */
  copy: z.object({ key: z.string(), sha256, made_at: timestamp }),
  /** The log that was applied: its first segment, how many, and the checksum of their bytes one after the other. */
  log: z.object({ first: z.string(), segments: count, sha256 }),
  /** The dump of the restored database, which reads every row. */
  dump: z.object({ bytes: count, sha256 }),
  /** `live_rows` is null for a table that was being written to, so that its rows could not be compared. */
  tables: z.array(z.object({ table: z.string(), rows: count, live_rows: count.nullable() })).readonly(),
});

const drill = z.object({
  id,
  origin: z.enum(["manual", "daily"]),
  status: z.enum(["running", "passed", "mismatch", "failed"]),
  created_at: timestamp,
  finished_at: timestamp.nullable(),
  problem: z.string().nullable(),
  /** Of the evidence as JSON with sorted keys and no white space. */
  sha256: sha256.nullable(),
});
const wholeDrill = drill.extend({ evidence: evidence.nullable() });

export const rows = [
  row({
    ...ofProject,
    name: "backups.create",
    request: "POST /v1/projects/:slug/backups",
    may: "member backups:write",
    body: z.strictObject({ content: content.default("database") }),
    result: z.object({ id, status }),
    success: [201],
    errors: ["no_database", "operation_in_progress", "conflict", "storage_full"],
    activity: "backup.requested",
    waits: true,
    summary:
      "Start a backup of the project's database, or with `content: files` of its files in `$STORAGE_DIR`; it continues after the response",
  }),
  row({
    ...ofProject,
    name: "backups.list",
    request: "GET /v1/projects/:slug/backups",
    may: "member backups:read",
    query: z.object(pageQuery(idCursor, limits.backups_listed)),
    result: z.object({ backups: z.array(backupSummary), next_cursor: nextCursor }),
    summary: "List the backups, newest first, 100 at a time",
  }),
  row({
    name: "backups.get",
    request: "GET /v1/backups/:id",
    names: "backup",
    may: "member backups:read",
    params: idParam,
    result: backup,
    summary: "Show one backup: its tables if it has any, its progress and the result of its last verification",
  }),
  row({
    ...ofProject,
    name: "backups.restore",
    request: "POST /v1/projects/:slug/restore",
    may: "member backups:write",
    approval: true,
    body: z
      .strictObject({
        backup_id: backupId.optional(),
        /** The moment to restore. */
        at: instant.optional(),
        /** The moment before this deployment, by its number. */
        before_deployment: z.number().int().min(1).max(2_147_483_647).optional(),
      })
      .refine((given) => Object.keys(given).length < 2, {
        message: "give only one of backup_id, at and before_deployment",
        path: ["at"],
      }),
    result: z.object({
      database: databaseName.nullable(),
      /** Where restored files are, below `$STORAGE_DIR`. */
      folder: z.string().nullable(),
      backup_id: id.nullable(),
      shows: timestamp.nullable(),
    }),
    success: [201],
    errors: [
      "no_database",
      "operation_in_progress",
      "conflict",
      "backup_damaged",
      "wal_missing",
      "target_outside_window",
      "storage_full",
      "disk_limit_reached",
    ],
    activity: "backup.restore_requested",
    waits: true,
    summary:
      "Restore a backup (by default the database's newest) or any moment of the database into a new database, or files into a new folder below `$STORAGE_DIR/.restored`; the live data is not changed",
  }),
  row({
    ...ofProject,
    name: "backups.restore_path",
    request: "POST /v1/projects/:slug/restore/path",
    may: "member backups:write",
    approval: true,
    body: z
      .strictObject({
        path: liveFile,
        backup_id: backupId.optional(),
        /** Instead of a backup: a folder below `$STORAGE_DIR/.restored`, from where the path is moved. */
        folder: insideStorage
          .max(100)
          .regex(/^[^/]+$/, "must be the name of a folder")
          .optional(),
        /** Without it, the request is refused if the path exists. */
        replace: z.boolean().default(false),
      })
      .refine(({ backup_id, folder }) => (backup_id === undefined) !== (folder === undefined), {
        message: "give either backup_id or folder",
        path: ["backup_id"],
      }),
    result: z.object({
      path: z.string(),
      ...keptFiles,
    }),
    success: [201],
    errors: ["operation_in_progress", "conflict", "backup_damaged", "storage_full"],
    activity: "backup.path_restore_requested",
    waits: true,
    summary:
      "Put one file or folder of a backup of files, or of a folder below `.restored`, into the live files; what it replaces is kept",
  }),
  row({
    name: "backups.verify",
    request: "POST /v1/backups/:id/verify",
    names: "backup",
    may: "member backups:write",
    params: idParam,
    result: z.object({ status: verdict, tables: z.array(comparison).readonly(), reason: z.string().nullable() }),
    errors: ["no_database", "operation_in_progress", "conflict", "storage_full"],
    activity: "backup.verification_requested",
    waits: true,
    summary:
      "Verify a backup: restore it into a scratch database, compare the rows of each table, and drop that database; or read all files and compare their checksums",
  }),
  row({
    ...ofProject,
    name: "backups.archive",
    request: "GET /v1/projects/:slug/database/archive",
    may: "member backups:read",
    result: archive,
    errors: ["no_database"],
    summary: "Show which moments of the project's database can be restored",
  }),
  row({
    ...ofProject,
    name: "backups.set_archive",
    request: "PATCH /v1/projects/:slug/database/archive",
    may: "owner backups:write",
    approval: true,
    body: z.strictObject({ enabled: z.boolean() }),
    result: archive,
    errors: ["no_database", "conflict"],
    activity: "database.archive_set",
    summary:
      "Keep the database's history, so that any moment can be restored, or stop keeping it; a database that was created before Berth could do that restarts once",
  }),
  row({
    ...ofProject,
    name: "backups.drills",
    request: "GET /v1/projects/:slug/drills",
    may: "member backups:read",
    result: z.object({ drills: z.array(drill).readonly() }),
    summary: "List the newest 100 drills: trial restores from the database's archive",
  }),
  row({
    ...ofProject,
    name: "backups.drill",
    request: "GET /v1/projects/:slug/drills/:drill",
    may: "member backups:read",
    params: slugParam.extend({ drill: id }),
    result: wholeDrill,
    summary: "Show a drill with its evidence: what was restored from which files, and each table's rows",
  }),
  row({
    ...ofProject,
    name: "backups.run_drill",
    request: "POST /v1/projects/:slug/drills",
    may: "member backups:write",
    result: wholeDrill,
    success: [201],
    errors: ["no_database", "operation_in_progress", "target_outside_window"],
    activity: "drill.requested",
    waits: true,
    summary:
      "Run a drill: restore the database from its archive in a server of its own, read every row, compare each table with the live one, and drop it",
  }),
  row({
    ...ofProject,
    name: "backups.restored",
    request: "GET /v1/projects/:slug/database/restored",
    may: "member backups:read",
    result: z.object({ databases: z.array(furtherDatabase) }),
    errors: ["no_database"],
    summary: "List the project's other databases: restored ones, and those that were live before a promotion",
  }),
  row({
    ...ofProject,
    name: "backups.promote",
    request: "POST /v1/projects/:slug/database/promote",
    may: "owner backups:write",
    approval: true,
    body: z.strictObject({
      database: databaseName.regex(visible, "must be the name of a database"),
      /** Go back to this deployment in the same step, because only its code fits the data. Also takes the right to roll back. */
      deployment: z.number().int().min(1).max(2_147_483_647).optional(),
    }),
    result: z.object({ database: databaseName, previous: databaseName }),
    errors: [
      "no_database",
      "operation_in_progress",
      "deploy_in_progress",
      "restart_failed",
      "edge_unavailable",
      "insufficient_scope",
      "nothing_to_roll_back",
      "previous_unhealthy",
      "org_suspended",
    ],
    activity: "database.promoted",
    waits: true,
    summary:
      "Make a restored database the live one, and wait until the application uses it; the previous live database is kept, and promoting it again undoes this. With `deployment`, the application goes back to that deployment at once",
  }),
  row({
    ...ofProject,
    name: "backups.drop",
    request: "DELETE /v1/projects/:slug/database/restored/:database",
    may: "owner backups:write",
    approval: true,
    params: slugParam.extend({ database: databaseName }),
    errors: ["no_database", "operation_in_progress", "conflict"],
    activity: "database.dropped",
    summary: "Drop a database beside the live one",
  }),
] as const;
