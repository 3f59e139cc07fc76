import { z } from "zod";
import { timestamp } from "./fields.ts";

/** What a write answers with `?dry_run=true`: what it would do. Nothing was changed. */
export const dryRun = z.object({
  dry_run: z.literal(true),
  /** The row's name. */
  route: z.string(),
  would_answer: z.number().int(),
  /** As the activity list would show it; null when everything is as wanted already. */
  would_change: z
    .object({ action: z.string().nullable(), target: z.string().nullable(), detail: z.record(z.string(), z.unknown()) })
    .nullable(),
  /** Whether this token has to wait for a human. */
  needs_approval: z.boolean(),
  /** Of destructive rows on a project; null of others. */
  affects: z
    .object({
      hostnames: z.array(z.string()).readonly(),
      database: z.object({ tables: z.number().int(), estimated_rows: z.number(), size_bytes: z.number() }).nullable(),
      last_verified_backup_at: timestamp.nullable(),
      requests_last_hour: z.number().int().nullable(),
    })
    .nullable(),
});
