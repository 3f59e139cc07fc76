import { z } from "zod";
import { replicasBody } from "./deployments.ts";
import { id, name, ofProject, slug, slugParam, timestamp, row } from "./table.ts";
import { limits } from "./limits.ts";

export const organization = z.object({
  id,
  slug: z.string(),
  name: z.string(),
  state: z.enum(["active", "suspended"]),
  max_projects: z.number().int(),
  projects: z.number().int(),
  created_at: timestamp,
  suspended_at: timestamp.nullable(),
});

const maxProjects = z.number().int().min(0).max(100_000);

export const rows = [
  row({
    name: "orgs.create",
    request: "POST /v1/orgs",
    may: "operator orgs:write",
    // It creates a token.
    approval: true,
    fresh: true,
    body: z.strictObject({ slug, name, max_projects: maxProjects.default(limits.projects_per_organization) }),
    result: organization.extend({ owner_token: z.string().nullable() }),
    secret: "owner_token",
    success: [201],
    errors: ["slug_taken"],
    activity: "org.created",
    summary: "Create an organization; the text of its owner token is shown only once",
  }),
  row({
    name: "orgs.list",
    request: "GET /v1/orgs",
    may: "operator orgs:read",
    result: z.object({ orgs: z.array(organization) }),
    summary: "List all organizations, newest first",
  }),
  row({
    name: "orgs.update",
    request: "PATCH /v1/orgs/:slug",
    names: "organization",
    may: "operator orgs:write",
    params: slugParam,
    body: z.strictObject({ name: name.optional(), max_projects: maxProjects.optional() }),
    result: organization,
    changes_rights: true,
    activity: "org.updated",
    summary: "Change an organization's name and its limit of projects",
  }),
  row({
    ...ofProject,
    name: "orgs.scale",
    request: "PUT /v1/orgs/:org/projects/:slug/scale",
    may: "operator deployments:write",
    params: slugParam.extend({ org: z.string().max(100) }),
    body: replicasBody,
    result: replicasBody,
    activity: "project.scaled",
    summary: "Set how many replicas of any organization's project run",
  }),
  row({
    name: "orgs.disable",
    request: "POST /v1/orgs/:slug/disable",
    names: "organization",
    may: "operator orgs:write",
    approval: true,
    params: slugParam,
    result: organization,
    errors: ["conflict"],
    changes_rights: true,
    activity: "org.disabled",
    summary: "Suspend an organization: its tokens, applications and cron jobs stop; nothing is deleted",
  }),
  row({
    name: "orgs.enable",
    request: "POST /v1/orgs/:slug/enable",
    names: "organization",
    may: "operator orgs:write",
    params: slugParam,
    result: organization,
    changes_rights: true,
    activity: "org.enabled",
    summary: "Enable a suspended organization again, with the deployments it had",
  }),
  row({
    name: "orgs.rescue",
    request: "POST /v1/orgs/:slug/owner-token",
    names: "organization",
    may: "operator orgs:write",
    // It creates a token.
    approval: true,
    fresh: true,
    params: slugParam,
    result: z.object({ id, owner_token: z.string().nullable(), expires_at: timestamp }),
    secret: "owner_token",
    success: [201],
    changes_rights: true,
    activity: "org.rescued",
    summary: "Give an organization that lost its owner tokens a new one; its text is shown only once",
  }),
] as const;
