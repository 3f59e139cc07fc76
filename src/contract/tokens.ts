import { z } from "zod";
import { roles, scopes } from "./access.ts";
import { id, name, timestamp, row } from "./table.ts";
import { limits } from "./limits.ts";

const scopeName = z.enum(scopes as readonly string[] as [string, ...string[]]);

export const apiToken = z.object({
  id,
  name: z.string(),
  /** `cli` and `mcp`: a program that a person connected; `member`: a person's session, never listed. */
  kind: z.enum(["token", "cli", "mcp", "member"]),
  /** Whose program it is; null for a token that is nobody's own. */
  person: z.string().nullable(),
  role: z.enum(roles),
  platform_admin: z.boolean(),
  scopes: z.array(scopeName),
  approval_mode: z.boolean(),
  /** The slugs of the projects that it is limited to; null: it reaches all of the organization. */
  projects: z.array(z.string()).nullable(),
  prefix: z.string(),
  created_at: timestamp,
  last_used_at: timestamp.nullable(),
  expires_at: timestamp.nullable(),
});

export const rows = [
  row({
    name: "tokens.create",
    request: "POST /v1/api-tokens",
    may: "member tokens:write",
    within_projects: true,
    approval: true,
    fresh: true,
    body: z.strictObject({
      name,
      role: z.enum(roles).default("member"),
      scopes: z.array(scopeName).min(1).max(scopes.length).optional(),
      expires_in_days: z.number().int().min(1).max(365).default(90),
      approval_mode: z.boolean().optional(),
      /** Limits the token to these projects; without it, to those of your own token. */
      projects: z.array(name).min(1).max(limits.projects_of_token).optional(),
    }),
    result: apiToken.extend({ token: z.string().nullable() }),
    secret: "token",
    success: [201],
    errors: ["forbidden", "conflict"],
    activity: "token.created",
    summary: "Create a token with a part of your own rights; its text is shown only once",
  }),
  row({
    name: "tokens.list",
    request: "GET /v1/api-tokens",
    may: "member tokens:read",
    within_projects: true,
    result: z.object({ api_tokens: z.array(apiToken) }),
    summary:
      "List the organization's tokens and connected programs, without their secret text; only your own if you are limited to projects",
  }),
  row({
    name: "tokens.delete",
    request: "DELETE /v1/api-tokens/:id",
    names: "token",
    may: "member tokens:write",
    within_projects: true,
    approval: true,
    params: z.object({ id }),
    errors: ["last_owner_token", "forbidden"],
    changes_rights: true,
    activity: "token.deleted",
    summary: "Revoke a token or disconnect a program, as a member your own; it stops working within a second",
  }),
] as const;
