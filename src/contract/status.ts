import { z } from "zod";
import { timestamp } from "./fields.ts";
import { row } from "./table.ts";

/** How something that is watched stands, from good to bad; `unknown` when looking at it did not work. */
export const checkStatuses = ["ok", "warn", "unknown", "fail"] as const;
export type CheckStatus = (typeof checkStatuses)[number];

const checkResult = z.object({
  /** What is watched, such as `disk`. */
  check: z.string(),
  /** The machine that was looked at; null for what all of them share. */
  machine: z.string().nullable(),
  /** What of it, such as `main/shop`; null for all of it. */
  subject: z.string().nullable(),
  status: z.enum(checkStatuses),
  /** Of the present status. */
  since: timestamp,
  last_ok_at: timestamp.nullable(),
  checked_at: timestamp,
  detail: z.string(),
  /** What helps. */
  hint: z.string().nullable(),
});

export const rows = [
  row({
    name: "status.get",
    method: "GET",
    path: "/v1/status",
    access: "operator",
    scope: "platform:read",
    result: z.object({
      /** The worst of all checks. */
      status: z.enum(checkStatuses),
      checked_at: timestamp.nullable(),
      open_alerts: z.number().int(),
      checks: z.array(checkResult),
    }),
    success: [200],
    summary: "Show every check of the platform with its status, since when, and what helps",
  }),
] as const;
