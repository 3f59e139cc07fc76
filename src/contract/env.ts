import { z } from "zod";
import { envFileProblems, readEnvFile } from "./env-file.ts";
import { ofProject, slugParam, timestamp, row } from "./table.ts";
import { limits } from "./limits.ts";

/** Replaces every value that is not shown; independent of the value. */
export const mask = "••••••••";

// POSIX environment names; semantics lists the limits.
export const variableName = z
  .string()
  .regex(
    /^[A-Za-z_][A-Za-z0-9_]{0,127}$/,
    "use letters, digits and underscores, at most 128, not starting with a digit",
  );
const params = slugParam.extend({ key: variableName });

/** Variables that the platform sets. */
export const systemVariables = [
  "PORT",
  "HOST",
  "DATABASE_URL",
  "CRON_SECRET",
  "STORAGE_DIR",
  "BERTH_PROJECT",
  "BERTH_DEPLOYMENT",
  "BERTH_GIT_SHA",
  "BERTH_URL",
  "BERTH_GIT_BRANCH",
  "BERTH_PREVIEW",
  "BERTH_PREVIEW_OF",
] as const;

/** Returns whether the platform owns a variable: one of this list, or one of libpq's `PG…`. */
export function isSystemVariable(name: string): boolean {
  return (systemVariables as readonly string[]).includes(name) || /^PG[A-Z]+$/.test(name);
}

const variableValue = z
  .string()
  .refine(
    (value) => new TextEncoder().encode(value).length <= limits.variable_value_bytes,
    `must be at most ${limits.variable_value_bytes / 1024} KiB`,
  )
  .refine((value) => !value.includes("\0"), "must not contain NUL");

const envFile = z.string().superRefine((text, context) => {
  const lines = readEnvFile(text);
  const refused = [
    ...envFileProblems(lines),
    ...lines.flatMap(({ line, value }) => {
      const issue = variableValue.safeParse(value).error?.issues[0];
      return issue === undefined ? [] : [`line ${line}: the value ${issue.message}`];
    }),
    ...(lines.length === 0 ? ["has no line KEY=VALUE"] : []),
  ];
  for (const message of refused.slice(0, 20)) context.addIssue({ code: "custom", message });
});

export const rows = [
  row({
    ...ofProject,
    name: "env.list",
    request: "GET /v1/projects/:slug/env",
    may: "member env:read",
    result: z.object({
      variables: z.array(
        z.object({ key: z.string(), value: z.literal(mask), system: z.boolean(), updated_at: timestamp.nullable() }),
      ),
    }),
    summary: "List the names of the variables; values are never shown",
  }),
  row({
    ...ofProject,
    name: "env.set",
    request: "PUT /v1/projects/:slug/env/:key",
    may: "member env:write",
    params,
    body: z
      .strictObject({
        value: variableValue.optional(),
        /** Instead of a value: a deployment number. Copies this variable's value from that deployment without showing it. */
        from_deployment: z.number().int().min(1).max(2_147_483_647).optional(),
      })
      .refine(({ value, from_deployment }) => (value === undefined) !== (from_deployment === undefined), {
        path: ["value"],
        message: "is required unless from_deployment names a deployment; give exactly one of the two",
      }),
    errors: ["system_variable", "variables_too_large", "forbidden"],
    activity: "env.set",
    summary: "Set a variable and restart the active deployment with it",
  }),
  row({
    ...ofProject,
    name: "env.import",
    request: "PATCH /v1/projects/:slug/env",
    may: "member env:write",
    body: z
      .strictObject({
        variables: z.record(variableName, variableValue).optional(),
        /** Instead of `variables`: a .env file. A line that Docker Compose and dotenv read differently is refused with its number. */
        file: envFile.optional(),
      })
      .refine(({ variables, file }) => (file === undefined) !== (Object.keys(variables ?? {}).length === 0), {
        path: ["variables"],
        message: "must name a variable unless file is given; give exactly one of the two",
      }),
    result: z.object({
      /** The variables that have another value now. */
      changed: z.array(z.string()),
      /** The variables that had this value already. */
      unchanged: z.array(z.string()),
    }),
    errors: ["system_variable", "variables_too_large", "forbidden"],
    activity: "env.imported",
    summary: "Set several variables, or those of a .env file, at once and restart the active deployment with them",
  }),
  row({
    ...ofProject,
    name: "env.delete",
    request: "DELETE /v1/projects/:slug/env/:key",
    may: "member env:write",
    approval: true,
    params,
    errors: ["system_variable"],
    activity: "env.deleted",
    summary: "Remove a variable and restart the active deployment without it",
  }),
] as const;
