import { z } from "zod";
import { id, name, timestamp, row } from "./table.ts";

export const sshKey = z.object({
  id,
  name: z.string(),
  public_key: z.string(),
  fingerprint: z.string(),
  created_at: timestamp,
  /** False when the token that registered it was revoked or has expired. */
  active: z.boolean(),
  /** When the token expires, and with it the key. */
  expires_at: timestamp.nullable(),
});

export const rows = [
  row({
    name: "ssh-keys.create",
    request: "POST /v1/ssh-keys",
    may: "member ssh-keys:write",
    within_projects: true,
    fresh: true,
    // A key pulls and pushes with its token's rights, and code that is pushed can read the project's secrets.
    further_scopes: ["projects:read", "deployments:write"],
    body: z.strictObject({
      name,
      public_key: z
        .string()
        .min(1)
        .max(16 * 1024),
    }),
    result: sshKey,
    success: [201],
    errors: ["key_taken", "conflict"],
    activity: "ssh_key.created",
    summary: "Register a public SSH key for pushing code; it works as long as the token that registered it is valid",
  }),
  row({
    name: "ssh-keys.list",
    request: "GET /v1/ssh-keys",
    may: "member ssh-keys:read",
    within_projects: true,
    result: z.object({ ssh_keys: z.array(sshKey) }),
    summary: "List the organization's public keys; only your own if you are limited to projects",
  }),
  row({
    name: "ssh-keys.delete",
    request: "DELETE /v1/ssh-keys/:id",
    names: "key",
    may: "member ssh-keys:write",
    within_projects: true,
    approval: true,
    params: z.object({ id }),
    errors: ["forbidden"],
    activity: "ssh_key.deleted",
    summary: "Remove a public key, as a member your own; it stops working at once",
  }),
] as const;
