import { z } from "zod";
import { entriesQuery, entry } from "./activity.ts";
import { nextCursor, ofProject, row } from "./table.ts";

export const rows = [
  row({
    ...ofProject,
    name: "timeline.list",
    request: "GET /v1/projects/:slug/timeline",
    may: "member activity:read",
    query: entriesQuery,
    result: z.object({ timeline: z.array(entry), next_cursor: nextCursor }),
    summary: "List what happened to a project, newest first: who changed what, deployments, crashes, failed cron runs",
  }),
] as const;
