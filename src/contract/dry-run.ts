import { z } from "zod";
import { timestamp } from "./table.ts";

/** The response of a write with `?dry_run=true`: what it would do. Nothing is changed. */
export const dryRun = z.object({
  dry_run: z.literal(true),
  route: z.string(),
  would_answer: z.number().int(),
  /** The entry that the activity list would show; null when everything is already as requested. */
  would_change: z
    .object({ action: z.string().nullable(), target: z.string().nullable(), detail: z.record(z.string(), z.unknown()) })
    .nullable(),
  /** Whether this token must wait for a human's approval. */
  needs_approval: z.boolean(),
  /** Set for destructive rows on a project; null for others. */
  affects: z
    .object({
      hostnames: z.array(z.string()).readonly(),
      database: z.object({ tables: z.number().int(), estimated_rows: z.number(), size_bytes: z.number() }).nullable(),
      last_verified_backup_at: timestamp.nullable(),
      requests_last_hour: z.number().int().nullable(),
    })
    .nullable(),
});
