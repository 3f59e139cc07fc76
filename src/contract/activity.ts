import { z } from "zod";
import { id, nextCursor, queryFlag, queryInteger, timestamp, row } from "./table.ts";
import { limits } from "./limits.ts";

/** What an entry is about; `?kind=` filters by it. */
export const entryKinds = [
  "project",
  "deployment",
  "build",
  "replica",
  "env",
  "domain",
  "cron",
  "database",
  "data",
  "backup",
  "access",
  "organization",
] as const;

/** One event. Contains names and numbers only, never the value of a variable, a cell or a secret. */
export const entry = z.object({
  id,
  at: timestamp,
  kind: z.enum(entryKinds),
  /** Such as `deployment.activated`. */
  action: z.string(),
  /** A sentence for people. */
  summary: z.string(),
  actor: z.object({ type: z.enum(["token", "person", "platform"]), name: z.string(), token_id: id.nullable() }),
  /** The project's slug; null for events of the organization. */
  project: z.string().nullable(),
  target: z.string().nullable(),
  detail: z.record(z.string(), z.unknown()),
  /** The API path with more details; null when there is none. */
  link: z.string().nullable(),
});

/** The nouns that `activity.changes` may report. */
export const changedNouns = [
  "activity",
  "build",
  "deployment",
  "replica",
  "domain",
  "database",
  "backup",
  "cron",
  "approval",
] as const;

const change = z.object({
  noun: z.enum(changedNouns),
  /** The project's slug; null for changes of the organization. */
  project: z.string().nullable(),
});

const kinds = z
  .string()
  .max(200)
  .transform((text) => text.split(","))
  .pipe(z.array(z.enum(entryKinds)))
  .optional();

/** The query for entries: newest first, optionally filtered by kind, from a cursor on. */
export const entriesQuery = z.object({
  limit: queryInteger(1, limits.entries_listed, 50),
  kind: kinds.describe(`Kinds, separated by commas: ${entryKinds.join(", ")}.`),
  cursor: z.string().max(100).optional(),
});

export const rows = [
  row({
    name: "activity.list",
    request: "GET /v1/activity",
    may: "member activity:read",
    within_projects: true,
    query: entriesQuery,
    result: z.object({ activity: z.array(entry), next_cursor: nextCursor }),
    summary: "List what changed in the organization, newest first",
  }),
  row({
    name: "activity.changes",
    request: "GET /v1/activity/changes",
    may: "member activity:read",
    within_projects: true,
    query: z.object({
      after: z
        .string()
        .regex(/^\d{1,18}$/, "use the next_cursor of an earlier response")
        .optional(),
      follow: queryFlag,
    }),
    result: z.object({
      /** Each changed noun of a project once, however often it changed. */
      changes: z.array(change),
      /** `after` is more than an hour old, so changes since then may be missing: reload all cached data. */
      reset: z.boolean(),
      next_cursor: z.string(),
    }),
    streams: true,
    summary:
      "List the nouns and projects that changed since `after`, so that a client reads them again; `follow=true` streams them as events",
  }),
] as const;
