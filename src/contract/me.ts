import { z } from "zod";
import { apiToken } from "./tokens.ts";
import { id } from "./fields.ts";
import { row } from "./table.ts";

const missingPart = z.object({ part: z.string(), effect: z.string(), remedy: z.string() });

export const rows = [
  row({
    name: "me.get",
    request: "GET /v1/me",
    may: "member",
    within_projects: true,
    result: z.object({
      organization: z.object({ id, slug: z.string(), name: z.string() }),
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
] as const;
