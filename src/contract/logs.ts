import { z } from "zod";
import { ofProject, optionalQueryInteger, queryFlag, queryInteger, timestamp, instant, row } from "./table.ts";
import { logLevels } from "./log-level.ts";
import { limits } from "./limits.ts";

const line = z.object({
  at: timestamp.nullable(),
  deployment: z.number().int().nullable(),
  process: z.string().nullable(),
  replica: z.number().int().nullable(),
  /** What the line itself names; null if nothing. */
  level: z.enum(logLevels).nullable(),
  text: z.string(),
});

const filters = {
  process: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,32}$/, "use the name of a process type")
    .optional(),
  replica: optionalQueryInteger(0, limits.replicas - 1),
  since: instant.optional(),
  until: instant.optional(),
  level: z.enum(logLevels).optional(),
  grep: z.string().min(1).max(200).optional(),
  /** Fields of lines that are JSON objects, each by its whole value: `req.method=GET`. Repeated, a line has all of them. */
  field: z
    .preprocess(
      (given) => (typeof given === "string" ? [given] : given),
      z
        .array(
          z
            .string()
            .max(500)
            .regex(/^[^=]+=/, "use a name and a value, such as status=500"),
        )
        .max(limits.log_fields, `give at most ${limits.log_fields} fields at once`),
    )
    .optional()
    .describe("A field of JSON lines and its whole value; repeated, the lines have all of these fields."),
};

const counted = { lines: z.number().int(), errors: z.number().int(), warnings: z.number().int() };

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
      ...filters,
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
      "Read the newest lines, oldest first; pass `next_cursor` as `after` to continue, or `follow=true` to stream new lines as events; `since`, `until`, `grep`, `level` (this one and worse) and `field` filter lines",
  }),
  row({
    ...ofProject,
    name: "logs.counts",
    request: "GET /v1/projects/:slug/logs/counts",
    may: "member logs:read",
    query: z.object({ ...filters, parts: queryInteger(2, limits.log_parts, 60) }),
    result: z.object({
      from: timestamp,
      until: timestamp,
      part_seconds: z.number().int(),
      /** Of the whole range. */
      ...counted,
      /** Each part of the range, the oldest first. */
      parts: z.array(z.object({ at: timestamp, ...counted })),
    }),
    large: true,
    summary:
      "Count the stored lines of a range (an hour without `since`), their errors and warnings, in at most `parts` parts of equal length; the filters are those of the lines",
  }),
] as const;
