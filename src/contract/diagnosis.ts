import { z } from "zod";
import { build } from "./builds.ts";
import { deployment } from "./deployments.ts";
import { failure } from "./failure.ts";
import { ofProject, timestamp, row } from "./table.ts";
import { project } from "./projects.ts";

/** A problem. `down`: the application serves no requests; `broken`: a part does not work; `notice`: worth knowing. */
const finding = z.object({
  severity: z.enum(["down", "broken", "notice"]),
  code: z.string(),
  /** What is the case, with the things named. May contain names that users chose. */
  sentence: z.string(),
  /** What to do, as a sentence. */
  advice: z.string(),
  /** Observed values by name. May contain text from applications and users. */
  seen: z.record(z.string(), z.json()),
  /** The failure of the build or deployment. May quote a command's output. */
  failure: failure.nullable(),
  /** The request to send next. */
  next: z.object({ route: z.string(), method: z.string(), path: z.string() }).nullable(),
});

export const rows = [
  row({
    ...ofProject,
    name: "diagnosis.get",
    request: "GET /v1/projects/:slug/diagnosis",
    may: "member projects:read",
    result: z.object({
      findings: z.array(finding),
      project,
      deployment: deployment.nullable(),
      build: build.nullable(),
      log: z.object({
        source: z.enum(["build", "runtime"]),
        lines: z.array(z.object({ at: timestamp.nullable(), text: z.string() })),
      }),
      unread: z.array(z.object({ route: z.string(), code: z.string() })),
    }),
    large: true,
    summary: "Diagnose a project: its problems, the likeliest cause first, each with the next step",
  }),
] as const;
