import { z } from "zod";
import { backupId } from "./backups.ts";
import {
  insideStorage,
  keptFiles,
  liveFile,
  nextCursor,
  numberCursor,
  ofProject,
  pageQuery,
  queryFlag,
  queryInteger,
  slugParam,
  timestamp,
  row,
} from "./table.ts";
import { limits } from "./limits.ts";

const bytes = z.number().int();

/** Disk usage and its limit. `used_bytes` is null until the first measurement. */
const share = z.object({ used_bytes: bytes.nullable(), limit_bytes: bytes });

const disk = z.object({
  /** `read_only`: over its limit. The application can read it, and `disk.remove` can delete from it. */
  storage: share.extend({ access: z.enum(["open", "read_only"]) }),
  /** `read_only`: over its limit; a session that requests writing may delete. `closed`: it kept growing; logins are refused until `reopens_at`. */
  database: share.extend({ access: z.enum(["open", "read_only", "closed"]), reopens_at: timestamp.nullable() }),
  /** Images of deployments, and build caches. Over the limit, new builds are refused. */
  images: share,
  /** Backups on the platform's own disk. Over the limit, the oldest are deleted. */
  backups: share,
  measured_at: timestamp.nullable(),
});

const limit = bytes
  .min(16 * 1024 ** 2)
  .max(1024 ** 5)
  .nullable();

export const rows = [
  row({
    ...ofProject,
    name: "disk.get",
    request: "GET /v1/projects/:slug/disk",
    may: "member projects:read",
    result: disk,
    summary: "Show how much disk a project uses, and its limits",
  }),
  row({
    ...ofProject,
    name: "disk.files",
    request: "GET /v1/projects/:slug/disk/files",
    may: "member data:read",
    query: z.object({
      ...pageQuery(numberCursor, limits.stored_files_listed),
      /** A folder below `$STORAGE_DIR`; without it, that folder itself. */
      path: insideStorage.optional(),
      /** A backup of files to look into, instead of the live ones. */
      backup: backupId.optional(),
    }),
    result: z.object({
      files: z.array(
        z.object({
          name: z.string(),
          /** Links are shown, and never followed. */
          kind: z.enum(["file", "folder", "link", "other"]),
          size_bytes: bytes,
          modified_at: timestamp,
        }),
      ),
      next_cursor: nextCursor,
    }),
    errors: ["conflict", "backup_damaged"],
    large: true,
    summary: "List a folder of a project's storage, or of a backup of it, by name, 500 entries at a time",
  }),
  row({
    ...ofProject,
    name: "disk.read",
    request: "GET /v1/projects/:slug/disk/file",
    may: "member data:read",
    query: z.object({
      path: insideStorage,
      offset: queryInteger(0, 999_999_999_999, 0),
      backup: backupId.optional(),
    }),
    result: z.object({
      base64: z.string(),
      /** Null once the file has no more bytes. */
      next_offset: z.number().int().nullable(),
    }),
    errors: ["conflict", "backup_damaged"],
    large: true,
    summary: "Read a file of a project's storage, or of a backup of it, a mebibyte at a time from an offset",
  }),
  row({
    ...ofProject,
    name: "disk.write",
    request: "PUT /v1/projects/:slug/disk/file",
    may: "member projects:write",
    approval: true,
    query: z.object({
      path: liveFile,
      size_bytes: queryInteger(0, limits.stored_upload_bytes, 0),
      /** Refused when the body is another file. A token in approval mode that replaces something must give it. */
      sha256: z
        .string()
        .regex(/^[0-9a-f]{64}$/, "must be 64 hexadecimal digits")
        .optional(),
      /** Without it, the request is refused if the path exists. */
      replace: queryFlag,
    }),
    upload: "file",
    result: z.object({ path: z.string(), size_bytes: bytes, ...keptFiles }),
    success: [201],
    errors: ["conflict", "storage_full", "disk_limit_reached"],
    activity: "disk.file_written",
    handles_source: true,
    waits: true,
    summary:
      "Write a file of up to 256 MiB, the body, into a project's storage folder, as a whole or not at all; what it replaces is kept",
  }),
  row({
    ...ofProject,
    name: "disk.remove",
    request: "DELETE /v1/projects/:slug/disk/storage",
    may: "member projects:write",
    approval: true,
    body: z.strictObject({ path: insideStorage }),
    result: disk,
    activity: "disk.files_removed",
    waits: true,
    summary: "Delete a file or folder of a project's storage folder, also while the application may not write to it",
  }),
  row({
    ...ofProject,
    name: "disk.limits",
    request: "PUT /v1/orgs/:org/projects/:slug/disk",
    may: "operator orgs:write",
    // A lower limit of backups deletes the oldest.
    approval: true,
    params: slugParam.extend({ org: z.string().max(100) }),
    body: z.strictObject({
      storage_bytes: limit.optional(),
      database_bytes: limit.optional(),
      images_bytes: limit.optional(),
      backups_bytes: limit.optional(),
    }),
    result: disk,
    activity: "project.disk_limits_changed",
    summary: "Set what a project of any organization may take of the disk; null restores the installation's limit",
  }),
] as const;
