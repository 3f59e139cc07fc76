import { z } from "zod";
import { timestamp, row } from "./table.ts";
import { registryHost } from "./image-name.ts";

const registry = z.object({
  host: z.string(),
  username: z.string(),
  created_at: timestamp,
  updated_at: timestamp,
});

const hostParam = z.object({ host: registryHost });

const line = /^[^\u0000-\u001f\u007f]*$/;

export const rows = [
  row({
    name: "registries.list",
    request: "GET /v1/registries",
    may: "member registries:read",
    result: z.object({ registries: z.array(registry) }),
    summary: "List the image registries that the organization's builds log in to; passwords are never shown",
  }),
  row({
    name: "registries.set",
    request: "PUT /v1/registries/:host",
    may: "owner registries:write",
    approval: true,
    params: hostParam,
    body: z.strictObject({
      username: z.string().min(1).max(255).regex(line, "must not contain control characters"),
      password: z
        .string()
        .min(1)
        .max(16 * 1024)
        .regex(line, "must not contain control characters")
        .meta({ writeOnly: true }),
    }),
    // "untried": the registry did not answer, or this platform pulls no images.
    result: registry.extend({ login: z.enum(["accepted", "untried"]) }),
    waits: true,
    errors: ["conflict"],
    activity: "registry.set",
    summary:
      "Store the user and password for a registry, after a login with them; builds of the organization pull private images with them",
  }),
  row({
    name: "registries.delete",
    request: "DELETE /v1/registries/:host",
    names: "registry",
    may: "owner registries:write",
    approval: true,
    params: hostParam,
    activity: "registry.deleted",
    summary: "Delete a registry's user and password; images that were already built stay",
  }),
] as const;
