import { z } from "zod";
import { ofProject, optionalQueryInteger, queryFlag, queryInteger, timestamp, instant } from "./fields.ts";
import { logLevels } from "./log-level.ts";
import { limits } from "./limits.ts";
import { row } from "./table.ts";

const line = z.object({
  at: timestamp.nullable(),
  deployment: z.number().int().nullable(),
  process: z.string().nullable(),
  replica: z.number().int().nullable(),
  /** What the line itself names; null if nothing. */
  level: z.enum(logLevels).nullable(),
  text: z.string(),
});

export const rows = [
  row({
    ...ofProject,
    name: "logs.list",
    request: "GET /v1/projects/:slug/logs",
    may: "member logs:read",
    query: z.object({
      source: z.enum(["build", "runtime"]).default("runtime"),
      limit: queryInteger(1, limits.log_lines, 200),
      after: z.string().max(200).optional(),
      process: z
        .string()
        .regex(/^[A-Za-z0-9_-]{1,32}$/, "use the name of a process type")
        .optional(),
      replica: optionalQueryInteger(0, limits.replicas - 1),
      since: instant.optional(),
      until: instant.optional(),
      level: z.enum(logLevels).optional(),
      grep: z.string().min(1).max(200).optional(),
      follow: queryFlag,
    }),
    result: z.object({
      source: z.enum(["build", "runtime"]),
      lines: z.array(line),
      next_cursor: z.string().nullable(),
    }),
    streams: true,
    large: true,
    summary:
      "Read the newest lines, oldest first; pass `next_cursor` as `after` to continue, or `follow=true` to stream new lines as events; `since`, `until`, `grep` and `level` (this one and worse) filter lines",
  }),
] as const;
