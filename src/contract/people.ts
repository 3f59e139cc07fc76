import { z } from "zod";
import { roles } from "./access.ts";
import { id, name, timestamp, row } from "./table.ts";
import { limits } from "./limits.ts";

const projects = z.array(name).min(1).max(limits.projects_of_token);

const member = z.object({
  /** Of the membership. */
  id,
  name: z.string(),
  email: z.string().nullable(),
  role: z.enum(roles),
  platform_admin: z.boolean(),
  /** The slugs of the projects that the member reaches; null: all of the organization. */
  projects: z.array(z.string()).nullable(),
  /** Whether the person can sign in again; otherwise only a session that is open now works. */
  can_sign_in: z.boolean(),
  last_used_at: timestamp.nullable(),
  created_at: timestamp,
});

const invite = z.object({
  id,
  email: z.string().nullable(),
  role: z.enum(roles),
  platform_admin: z.boolean(),
  projects: z.array(z.string()).nullable(),
  /** The name of the person or token that invites. */
  invited_by: z.string(),
  created_at: timestamp,
  expires_at: timestamp,
});

const account = z.object({
  id,
  name: z.string(),
  email: z.string().nullable(),
  /** The slugs of the person's organizations. */
  organizations: z.array(z.string()),
  can_sign_in: z.boolean(),
  created_at: timestamp,
  last_used_at: timestamp.nullable(),
  disabled_at: timestamp.nullable(),
});

const ofAccount = { may: "operator orgs:write", params: z.object({ id }) } as const;

export const rows = [
  row({
    name: "people.accounts",
    request: "GET /v1/platform/people",
    may: "operator orgs:read",
    result: z.object({ accounts: z.array(account) }),
    summary: "List the people of all organizations",
  }),
  row({
    ...ofAccount,
    name: "people.link",
    request: "POST /v1/platform/people/:id/link",
    // It signs in as the person.
    approval: true,
    fresh: true,
    result: z.object({ id, url: z.string().nullable(), expires_at: timestamp }),
    secret: "url",
    success: [201],
    errors: ["conflict"],
    activity: "person.link_made",
    summary: "Make a link that signs a person in once, within 15 minutes, so that they can add a passkey",
  }),
  row({
    ...ofAccount,
    name: "people.disable",
    request: "POST /v1/platform/people/:id/disable",
    approval: true,
    result: account,
    errors: ["conflict", "last_owner_token"],
    changes_rights: true,
    activity: "person.disabled",
    summary: "Disable a person: their sessions, tokens, SSH keys and invitations end within a second",
  }),
  row({
    ...ofAccount,
    name: "people.enable",
    request: "POST /v1/platform/people/:id/enable",
    result: account,
    errors: ["conflict"],
    activity: "person.enabled",
    summary: "Let a disabled person sign in again; what ended stays ended",
  }),
  row({
    name: "people.list",
    request: "GET /v1/members",
    may: "member tokens:read",
    within_projects: true,
    result: z.object({ members: z.array(member) }),
    summary: "List the people of the organization; only yourself if you are limited to projects",
  }),
  row({
    name: "people.update",
    request: "PATCH /v1/members/:id",
    names: "member",
    may: "owner tokens:write",
    approval: true,
    fresh: true,
    params: z.object({ id }),
    body: z.strictObject({ role: z.enum(roles).optional(), projects: projects.nullable().optional() }),
    result: member,
    errors: ["last_owner_token", "forbidden"],
    changes_rights: true,
    activity: "member.updated",
    summary: "Change a person's role, or the projects that they reach; it takes effect within a second",
  }),
  row({
    name: "people.remove",
    request: "DELETE /v1/members/:id",
    names: "member",
    may: "owner tokens:write",
    approval: true,
    fresh: true,
    params: z.object({ id }),
    errors: ["last_owner_token", "forbidden"],
    changes_rights: true,
    activity: "member.removed",
    summary: "Remove a person: their sessions, and the tokens and SSH keys that they created here, end within a second",
  }),
  row({
    name: "people.invite",
    request: "POST /v1/invites",
    may: "owner tokens:write",
    approval: true,
    fresh: true,
    body: z.strictObject({
      role: z.enum(roles).default("member"),
      /** Limits a member to these projects. */
      projects: projects.optional(),
      email: z.email().max(254).optional(),
      /** The person also becomes an administrator of the platform; only for callers who are. */
      platform_admin: z.boolean().optional(),
    }),
    result: invite.extend({
      /** The link. Null: it was mailed, and nobody else gets it. */
      url: z.string().nullable(),
      /** Why the mail with the link could not be sent; then `url` has it. */
      mail_problem: z.string().nullable(),
    }),
    secret: "url",
    success: [201],
    errors: ["forbidden", "conflict"],
    activity: "invite.created",
    waits: true,
    summary: "Invite a person by a link that works once within seven days: mailed to `email`, or else shown once",
  }),
  row({
    name: "people.invites",
    request: "GET /v1/invites",
    may: "owner tokens:read",
    result: z.object({ invites: z.array(invite) }),
    summary: "List the open invitations, without their links",
  }),
  row({
    name: "people.revoke",
    request: "DELETE /v1/invites/:id",
    names: "invite",
    may: "owner tokens:write",
    approval: true,
    params: z.object({ id }),
    activity: "invite.revoked",
    summary: "Revoke an invitation; its link no longer works",
  }),
] as const;
