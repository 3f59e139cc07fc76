import { z } from "zod";
import { failure } from "./failure.ts";
import { slugParam, timestamp } from "./fields.ts";
import { databaseStates, statesOf } from "./states.ts";
import { row } from "./table.ts";

export const database = z.object({
  status: z.enum(statesOf(databaseStates)),
  engine: z.literal("postgresql"),
  engine_version: z.string().nullable(),
  size_bytes: z.number().int().nullable(),
  connections: z.number().int().nullable(),
  created_at: timestamp,
  failure: failure.pick({ summary: true, hint: true }).nullable(),
});

export const rows = [
  row({
    name: "database.get",
    method: "GET",
    path: "/v1/projects/:slug/database",
    names: "project",
    living: true,
    access: "member",
    scope: "database:read",
    params: slugParam,
    result: database,
    success: [200],
    errors: ["no_database"],
    waits: true,
    summary: "Show the project's database; credentials are never shown",
  }),
  row({
    name: "database.create",
    method: "POST",
    path: "/v1/projects/:slug/database",
    names: "project",
    living: true,
    access: "member",
    scope: "database:write",
    params: slugParam,
    result: database,
    success: [201, 200],
    errors: ["storage_full"],
    activity: "database.created",
    waits: true,
    summary: "Give the project a PostgreSQL database; a second call answers with the one it has",
  }),
] as const;
