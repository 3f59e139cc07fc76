import { z } from "zod";
import { apiToken } from "./tokens.ts";
import { id, name, timestamp, row } from "./table.ts";

const missingPart = z.object({ part: z.string(), effect: z.string(), remedy: z.string() });

export const rows = [
  row({
    name: "me.get",
    request: "GET /v1/me",
    may: "member",
    within_projects: true,
    result: z.object({
      organization: z.object({ id, slug: z.string(), name: z.string() }),
      /** The person on whose behalf the caller acts; null for a token of its own. */
      person: z
        .object({
          id,
          name: z.string(),
          email: z.string().nullable(),
          organizations: z.array(z.object({ slug: z.string(), name: z.string() })),
        })
        .nullable(),
      role: z.enum(["owner", "member"]),
      platform_admin: z.boolean(),
      token: apiToken.omit({ last_used_at: true }),
      platform: z.object({
        version: z.string(),
        ssh_host_key: z.string(),
        runtime: z.string(),
        network: z.string(),
        isolation: z.array(z.string()),
        missing: z.array(missingPart),
      }),
    }),
    summary: "Show the caller, its permissions, and what the platform isolates",
  }),
  row({
    name: "me.update",
    request: "PATCH /v1/me",
    may: "member",
    within_projects: true,
    body: z.strictObject({ name }),
    errors: ["conflict"],
    changes_rights: true,
    activity: "person.renamed",
    summary: "Change your name",
  }),
  row({
    name: "me.passkeys",
    request: "GET /v1/me/passkeys",
    may: "member",
    within_projects: true,
    result: z.object({
      passkeys: z.array(
        z.object({
          id,
          name: z.string(),
          /** False when it belongs to an earlier host name of the platform. */
          usable: z.boolean(),
          created_at: timestamp,
          last_used_at: timestamp.nullable(),
        }),
      ),
    }),
    summary: "List your passkeys; empty for a token that is no person's session",
  }),
  row({
    name: "me.rename_passkey",
    request: "PATCH /v1/me/passkeys/:id",
    may: "member",
    within_projects: true,
    params: z.object({ id }),
    body: z.strictObject({ name }),
    errors: ["conflict"],
    activity: "passkey.renamed",
    summary: "Name one of your passkeys",
  }),
  row({
    name: "me.delete_passkey",
    request: "DELETE /v1/me/passkeys/:id",
    may: "member",
    within_projects: true,
    approval: true,
    fresh: true,
    params: z.object({ id }),
    errors: ["conflict"],
    activity: "passkey.deleted",
    summary: "Delete one of your passkeys; the last way to sign in stays",
  }),
  row({
    name: "me.identities",
    request: "GET /v1/me/identities",
    may: "member",
    within_projects: true,
    result: z.object({
      identities: z.array(
        z.object({
          id,
          /** Null when the platform has the provider no more. */
          provider: z.string().nullable(),
          issuer: z.string(),
          /** How the provider names you. */
          label: z.string(),
          created_at: timestamp,
          last_used_at: timestamp,
        }),
      ),
    }),
    summary: "List the accounts at identity providers with which you sign in",
  }),
  row({
    name: "me.unlink_identity",
    request: "DELETE /v1/me/identities/:id",
    may: "member",
    within_projects: true,
    approval: true,
    fresh: true,
    params: z.object({ id }),
    errors: ["conflict"],
    activity: "identity.unlinked",
    summary: "No longer sign in with this account of a provider; the last way to sign in stays",
  }),
  row({
    name: "me.sessions",
    request: "GET /v1/me/sessions",
    may: "member",
    within_projects: true,
    result: z.object({
      sessions: z.array(
        z.object({
          id,
          /** As the browser named itself. */
          user_agent: z.string(),
          address: z.string(),
          created_at: timestamp,
          last_used_at: timestamp,
          expires_at: timestamp,
        }),
      ),
    }),
    summary: "List the browsers in which you are signed in; empty for a token that is no person's session",
  }),
  row({
    name: "me.end_sessions",
    request: "POST /v1/me/sessions/end",
    may: "member",
    within_projects: true,
    errors: ["conflict"],
    changes_rights: true,
    activity: "sessions.ended",
    summary: "Sign out in every browser, also this one, and disconnect your programs, within a second",
  }),
  row({
    name: "me.leave",
    request: "DELETE /v1/me/membership",
    // No fresh proof: it gives nothing away, and who has no passkey may leave, too.
    may: "member tokens:write",
    within_projects: true,
    approval: true,
    errors: ["conflict", "last_owner_token"],
    changes_rights: true,
    activity: "member.left",
    summary:
      "Leave the organization: your sessions, and the tokens and SSH keys that you created here, end within a second",
  }),
] as const;
