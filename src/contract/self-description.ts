import { z } from "zod";
import { row } from "./table.ts";

const described = z.object({
  version: z.string(),
  scopes: z.array(z.string()),
  routes: z.array(
    z.object({
      name: z.string(),
      method: z.string(),
      path: z.string(),
      access: z.string(),
      scope: z.string().nullable(),
      /** Scopes that are required in addition. */
      further_scopes: z.array(z.string()),
      approval: z.boolean(),
      waits: z.boolean(),
      idempotency_key: z.boolean(),
      dry_run: z.boolean(),
      summary: z.string(),
      errors: z.array(z.string()),
    }),
  ),
  error_codes: z.array(
    z.object({
      code: z.string(),
      status: z.number().int(),
      meaning: z.string(),
      retry: z.enum(["yes", "no", "after_change"]),
      hint: z.string().optional(),
      next: z.string().optional(),
    }),
  ),
  limits: z.record(z.string(), z.number()),
});

export const rows = [
  row({
    name: "self-description.capabilities",
    request: "GET /v1/capabilities",
    may: "public",
    result: described,
    summary: "List routes, scopes and error codes",
  }),
  row({
    name: "self-description.openapi",
    request: "GET /v1/openapi.json",
    may: "public",
    result: z.looseObject({ openapi: z.string() }),
    summary: "The OpenAPI 3.1 description of this API",
  }),
  row({
    name: "self-description.berth-file",
    request: "GET /v1/berth.schema.json",
    may: "public",
    result: z.looseObject({ $schema: z.string() }),
    summary: "Get the JSON schema of berth.json",
  }),
] as const;
