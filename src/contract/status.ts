import { z } from "zod";
import { timestamp, row } from "./table.ts";

/** The result of a check, from good to bad: `off` when what it checks is not configured, `unknown` when the check itself did not work. */
export const checkStatuses = ["off", "ok", "warn", "unknown", "fail"] as const;
export type CheckStatus = (typeof checkStatuses)[number];

/** Whether a check found nothing that a person has to look at. */
export const isGood = (status: CheckStatus): boolean => status === "ok" || status === "off";

const checkResult = z.object({
  /** The name of the check, such as `disk`. */
  check: z.string(),
  /** The machine that was checked; null for what all machines share. */
  machine: z.string().nullable(),
  /** The checked item, such as `main/shop`; null when the check covers all. */
  subject: z.string().nullable(),
  status: z.enum(checkStatuses),
  /** When the present status began. */
  since: timestamp,
  last_ok_at: timestamp.nullable(),
  checked_at: timestamp,
  detail: z.string(),
  /** What to do. */
  hint: z.string().nullable(),
});

export const rows = [
  row({
    name: "status.get",
    request: "GET /v1/status",
    may: "operator platform:read",
    result: z.object({
      status: z.enum(checkStatuses),
      checked_at: timestamp.nullable(),
      open_alerts: z.number().int(),
      checks: z.array(checkResult),
    }),
    summary: "Show every check of the platform: its status, since when, and what to do",
  }),
] as const;
