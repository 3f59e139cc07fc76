import { limits } from "./limits.ts";
import { z } from "zod";
import { id, idCursor, pageQuery, nextCursor, queryFlag, timestamp, row } from "./table.ts";

const severities = ["warning", "critical"] as const;
export type AlertSeverity = (typeof severities)[number];

const alert = z.object({
  id,
  /** The name of the check that raised it, as in `GET /v1/status`. */
  check: z.string(),
  machine: z.string().nullable(),
  subject: z.string().nullable(),
  severity: z.enum(severities),
  summary: z.string(),
  hint: z.string().nullable(),
  opened_at: timestamp,
  /** Null while it is open. */
  resolved_at: timestamp.nullable(),
});

export const rows = [
  row({
    name: "alerts.list",
    request: "GET /v1/alerts",
    may: "operator platform:read",
    query: z.object({ all: queryFlag, ...pageQuery(idCursor, limits.alerts_listed) }),
    result: z.object({ alerts: z.array(alert), next_cursor: nextCursor }),
    summary: "List the open alerts, newest first; `?all=true` adds those that were resolved in the last 90 days",
  }),
] as const;
