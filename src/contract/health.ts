import { z } from "zod";
import { timestamp } from "./table.ts";

/** The states of a project that is not deleted, made once on the server. A deployment that is `active` may belong to any of them. */
const healthStates = [
  "empty",
  "deploying",
  "healthy",
  "degraded",
  "crashing",
  "down",
  /** All its process types are scaled to 0, or it sleeps until a request comes. */
  "asleep",
  "maintenance",
] as const;

export const health = z.object({
  state: z.enum(healthStates),
  /** The cause, such as `crash_loop` or `server_errors`; the state itself when there is nothing to explain. */
  code: z.string(),
  sentence: z.string(),
  /** The next step as a sentence, and the request that begins it; null when there is nothing to do. */
  next: z
    .object({
      advice: z.string(),
      call: z.object({ route: z.string(), method: z.string(), path: z.string() }).nullable(),
    })
    .nullable(),
  /** When it began, if that is known. */
  since: timestamp.nullable(),
  /** The observed values behind the sentence, by name. */
  seen: z.record(z.string(), z.json()),
  /** Where a rollback without a number would go. `after_release`: a release command has run since, so the database may not fit. */
  rollback: z.object({ to: z.number().int(), after_release: z.boolean() }).nullable(),
});

export type Health = z.output<typeof health>;
