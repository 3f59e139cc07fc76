import { z } from "zod";
import { id, timestamp, row } from "./table.ts";
import { health } from "./health.ts";
import { backupStates, databaseStates, deploymentStates, statesOf } from "./states.ts";

const deployment = z.object({
  id,
  number: z.number().int(),
  status: z.enum(statesOf(deploymentStates)),
  commit: z.string(),
  branch: z.string(),
  /** The first line of the commit's message. */
  message: z.string(),
  at: timestamp,
});

/** Conditions that need a person's attention. */
export const attentions = [
  "deploy_failed",
  "build_failed",
  "crashing",
  "replicas_missing",
  "database_failed",
  "backup_failed",
  "maintenance",
  "storage_over_limit",
  "database_over_limit",
  "images_over_limit",
  /** A hostname waits for its DNS records, or for the proof of its owner. */
  "hostname_waiting",
  /** A hostname that is served points elsewhere. */
  "hostname_lost",
  /** A hostname has no valid certificate although one was ordered. */
  "certificate_failed",
  /** A certificate ends within 14 days, or within the last quarter of a shorter lifetime. */
  "certificate_ending",
] as const;

const project = z.object({
  id,
  slug: z.string(),
  name: z.string(),
  state: z.enum(["active", "deleted"]),
  url: z.string(),
  active_deployment: deployment.nullable(),
  /** The newest deployment, whatever its state. */
  last_deployment: deployment.nullable(),
  replicas: z.object({ ready: z.number().int(), wanted: z.number().int() }),
  last_hour: z.object({
    requests: z.number().int(),
    errors: z.number().int(),
    /** The same hour in twenty parts of three minutes, oldest first; empty without requests. */
    parts: z.array(z.object({ requests: z.number().int(), errors: z.number().int() })),
  }),
  database: z.enum(statesOf(databaseStates)).nullable(),
  last_backup: z.object({ id, status: z.enum(statesOf(backupStates)), at: timestamp }).nullable(),
  /** Size of the storage folder when last measured; null before the first measurement. */
  storage_bytes: z.number().int().nullable(),
  /** Size of the database, and of images with repository and build caches, measured likewise. */
  database_bytes: z.number().int().nullable(),
  images_bytes: z.number().int().nullable(),
  health,
  attention: z.array(z.enum(attentions)),
});

export const rows = [
  row({
    name: "overview.get",
    request: "GET /v1/overview",
    may: "member projects:read",
    within_projects: true,
    result: z.object({
      organization: z.object({ slug: z.string(), name: z.string(), max_projects: z.number().int() }),
      totals: z.object({
        projects: z.number().int(),
        serving: z.number().int(),
        needing_attention: z.number().int(),
        requests_last_hour: z.number().int(),
        errors_last_hour: z.number().int(),
        storage_bytes: z.number().int(),
        database_bytes: z.number().int(),
        images_bytes: z.number().int(),
        approvals_pending: z.number().int(),
        /** Open alerts of the platform, for its operator; null for all other callers. */
        alerts: z.number().int().nullable(),
      }),
      projects: z.array(project),
      /** The previews of these projects' branches; no total counts them. */
      previews: z.array(project.extend({ preview_of: z.string() })),
    }),
    summary:
      "Summarise the organization: each project with its deployment, replicas, traffic, database, backup and storage",
  }),
] as const;
