import { z } from "zod";
import { name, slug, timestamp, row } from "./table.ts";

const provider = z.object({
  /** Part of the address that the provider sends people back to. */
  id: z.string(),
  kind: z.enum(["oidc", "github"]),
  name: z.string(),
  issuer: z.string(),
  client_id: z.string(),
  /** The address to register at the provider. */
  callback_url: z.string(),
  created_at: timestamp,
  updated_at: timestamp,
});

const text = z.string().regex(/^[^\u0000-\u001f\u007f]*$/, "must not contain control characters");
const params = z.object({ id: slug });

export const rows = [
  row({
    name: "providers.list",
    request: "GET /v1/platform/providers",
    may: "operator orgs:read",
    result: z.object({ providers: z.array(provider) }),
    summary: "List the identity providers with which people may sign in; secrets are never shown",
  }),
  row({
    name: "providers.set",
    request: "PUT /v1/platform/providers/:id",
    may: "operator orgs:write",
    approval: true,
    params,
    body: z.strictObject({
      kind: z.enum(["oidc", "github"]),
      /** On the button of the sign-in page. */
      name,
      /** For GitHub only on a server of one's own; default: https://github.com. */
      issuer: z
        .url({ protocol: /^https?$/ })
        .max(500)
        .optional(),
      client_id: text.min(1).max(500),
      client_secret: text.min(1).max(4096).meta({ writeOnly: true }),
    }),
    result: provider,
    waits: true,
    errors: ["conflict"],
    activity: "provider.set",
    summary: "Let people sign in with an OpenID Connect issuer or GitHub; an issuer's description is read first",
  }),
  row({
    name: "providers.delete",
    request: "DELETE /v1/platform/providers/:id",
    may: "operator orgs:write",
    approval: true,
    params,
    activity: "provider.deleted",
    summary: "Remove an identity provider: nobody signs in with it any more; sessions go on",
  }),
] as const;
