import { z } from "zod";
import { instant, ofProject, slug, slugParam, timestamp, row } from "./table.ts";
import { limits } from "./limits.ts";
import { branchStates, statesOf } from "./states.ts";

/** A branch's name in requests. It takes the form of a slug. */
export const branchName = z
  .string()
  .max(63)
  .regex(/^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/, "use 1 to 63 lower case letters, digits and inner hyphens");

const count = z.number().int();

const branch = z.object({
  name: z.string(),
  /** `failed`: nothing of it is left but this row. */
  status: z.enum(statesOf(branchStates)),
  /** The moment that it shows; null: the one at which it was copied. */
  shows: timestamp.nullable(),
  masked: z.boolean(),
  /** `clone`: its blocks are shared with the database's until one changes. `copy`: all bytes are copied. Null: not known yet. */
  method: z.enum(["clone", "copy"]).nullable(),
  /** What is copied, and about how long that takes. */
  copy_bytes: count.nullable(),
  expected_seconds: count.nullable(),
  size_bytes: count.nullable(),
  /** Beyond it, the branch can only be read. */
  size_limit_bytes: count.nullable(),
  read_only: z.boolean(),
  /** The project whose application uses it, if one does. */
  used_by: slug.nullable(),
  failure: z.object({ code: z.string(), summary: z.string() }).nullable(),
  created_at: timestamp,
  ready_at: timestamp.nullable(),
  /** Null: it ends with the project that uses it. */
  expires_at: timestamp.nullable(),
});

const ofBranch = { ...ofProject, params: slugParam.extend({ branch: z.string().max(63) }) } as const;

export const rows = [
  row({
    ...ofProject,
    name: "branches.list",
    request: "GET /v1/projects/:slug/database/branches",
    may: "member database:read",
    result: z.object({ branches: z.array(branch).readonly() }),
    summary: "List the branches of the project's database: copies in servers of their own, which end by themselves",
  }),
  row({
    ...ofBranch,
    name: "branches.get",
    request: "GET /v1/projects/:slug/database/branches/:branch",
    may: "member database:read",
    result: branch,
    summary: "Show a branch of the database; credentials are never shown",
  }),
  row({
    ...ofProject,
    name: "branches.create",
    request: "POST /v1/projects/:slug/database/branches",
    may: "member database:write",
    approval: true,
    body: z
      .strictObject({
        name: branchName,
        /** The moment that it shows; by default now. */
        at: instant.optional(),
        /** The moment before this deployment, by its number. */
        before_deployment: z.number().int().min(1).max(2_147_483_647).optional(),
        /** Runs the SQL that `mask` in berth.json of the deployed commit names, before anybody can reach the branch. */
        mask: z.boolean().default(false),
        ttl_minutes: z.number().int().min(1).max(limits.branch_minutes).optional(),
      })
      .refine(({ at, before_deployment }) => at === undefined || before_deployment === undefined, {
        message: "give only one of at and before_deployment",
        path: ["at"],
      }),
    result: branch,
    success: [201],
    errors: [
      "no_database",
      "conflict",
      "branch_limit",
      "branches_unavailable",
      "target_outside_window",
      "wal_missing",
      "backup_damaged",
      "copy_too_large",
      "mask_failed",
      "storage_full",
    ],
    activity: "database.branch_created",
    waits: true,
    summary:
      "Make a branch: a copy of the database, as it is or was, in a server of its own; a copy of more than 5 s is not awaited, and says how long it takes",
  }),
  row({
    ...ofBranch,
    name: "branches.delete",
    request: "DELETE /v1/projects/:slug/database/branches/:branch",
    may: "member database:write",
    approval: true,
    activity: "database.branch_deleted",
    summary: "Delete a branch of the database, and end its connections",
  }),
] as const;
