import { z } from "zod";
import { row } from "./table.ts";

const template = z.object({
  name: z.string(),
  title: z.string(),
  /** What it is, in one sentence. */
  summary: z.string(),
  /** Whether it needs the project's database, which has to be created before its first deploy. */
  has_database: z.boolean(),
  /** In the format of `builds.change`. */
  files: z.array(z.object({ path: z.string(), text: z.string() })).readonly(),
});

export const rows = [
  row({
    name: "templates.list",
    request: "GET /v1/templates",
    may: "member projects:read",
    within_projects: true,
    result: z.object({ templates: z.array(template).readonly() }),
    summary: "List small applications to begin with, and their files: `builds.change` deploys them in a new project",
  }),
] as const;
