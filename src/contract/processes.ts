import { z } from "zod";
import * as deployments from "./deployments.ts";
import { ofProject, slugParam, timestamp, row } from "./table.ts";
import { limits } from "./limits.ts";

/** A process type, as at the start of a Procfile line. */
const type = z.string().regex(/^[A-Za-z0-9_-]{1,32}$/, "use the name of a process type in the Procfile");

const replica = z.object({
  replica: z.number().int(),
  deployment: z.number().int(),
  /** `up` once it is healthy or, for types that serve no requests, has stayed up; `crashed` waits for its next start. */
  state: z.enum(["starting", "up", "stopping", "crashed"]),
  since: timestamp,
  restarts: z.number().int(),
  /** Measured within the last minutes. */
  memory_bytes: z.number().int().nullable(),
  cpus: z.number().nullable(),
});

const settings = {
  type: z.string(),
  replicas: z.number().int(),
  /** Whether old and new replicas run side by side while a deployment is switched; always true for `web`. */
  overlap: z.boolean(),
};

const process = z.object({ ...settings, command: z.string(), running: z.array(replica) });

export const rows = [
  row({
    ...ofProject,
    name: "processes.list",
    request: "GET /v1/projects/:slug/processes",
    may: "member deployments:read",
    result: z.object({ processes: z.array(process) }),
    summary: "List the process types of the active deployment with their replicas",
  }),
  row({
    ...ofProject,
    name: "processes.set",
    request: "PUT /v1/projects/:slug/processes/:type",
    may: "operator deployments:write",
    params: slugParam.extend({ type: z.string().max(100) }),
    body: z.strictObject({
      replicas: z.number().int().min(0).max(limits.replicas).optional(),
      overlap: z.boolean().optional(),
    }),
    result: z.object(settings),
    activity: "process.changed",
    summary:
      "Set how many replicas of a process type run, and whether a deploy runs old and new ones beside each other",
  }),
  row({
    ...ofProject,
    name: "processes.restart",
    request: "POST /v1/projects/:slug/restart",
    may: "member deployments:write",
    body: z.strictObject({ type: type.optional() }),
    result: z.object({
      status: z.literal("restarted"),
      /** The new deployment of the same image; null when one type other than `web` was restarted in place. */
      deployment: deployments.deployment.nullable(),
    }),
    errors: ["org_suspended", "nothing_to_deploy", "deploy_in_progress", "restart_failed", "edge_unavailable"],
    activity: "process.restarted",
    waits: true,
    summary: "Restart all processes, or those of one type, with health checks and no lost request",
  }),
] as const;
