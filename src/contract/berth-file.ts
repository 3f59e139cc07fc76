import { parseSchedule } from "./cron-schedule.ts";
import { requireOneWork } from "./cron.ts";
import { z } from "zod";
import { limits } from "./limits.ts";

const command = z
  .string()
  .trim()
  .min(1, "must not be empty")
  .max(4096)
  .regex(/^[^\0]*$/, "must not contain NUL");

const folder = z
  .string()
  .max(512)
  .regex(/^(?!\/)(?!.*(?:^|\/)\.\.(?:\/|$))[^\0\\]*$/, "must be a folder inside the repository, such as apps/web")
  .transform((path) => path.replace(/^(?:\.\/)+|\/+$/g, ""));

export const rootFolder = folder.describe("The folder of the application; Berth builds only what is in it");

/** Path patterns: only changes to matching paths deploy. */
export const watchedPaths = z
  .array(
    z
      .string()
      .min(1)
      .max(512)
      .regex(/^[^\0]*$/, "must not contain NUL")
      .regex(/^(?!.*(?:^|\/)\.\.(?:\/|$))/, "must not lead out of the repository: leave out `..`"),
  )
  .max(100)
  .describe(
    "Patterns of paths, relative to the repository's root; a push that changes no matching file deploys nothing",
  );

const cron = z
  .strictObject({
    path: z
      .string()
      .max(512)
      .regex(/^\/(?![/\\])[^\s\\\u0000-\u001f\u007f-\u009f]*$/, "must start with one slash and contain no space")
      .optional(),
    command: z
      .string()
      .min(1)
      .max(8192)
      .regex(/^[^\0]*$/, "must not contain NUL")
      .optional()
      .describe("Instead of path: a shell command line, run in the application's image"),
    schedule: z.string().superRefine((text, context) => {
      const parsed = parseSchedule(text);
      if ("refused" in parsed) context.addIssue({ code: "custom", message: parsed.refused });
    }),
  })
  .superRefine(requireOneWork);

/** The schema of a repository's `berth.json`. Every field is optional. */
export const berthFile = z.strictObject({
  $schema: z.string().optional().describe("Where this schema lies, for editors"),
  root: rootFolder.optional(),
  build: command
    .optional()
    .describe("The command that builds the application; it replaces the build that Berth detects"),
  start: command.optional().describe("The command that starts the web process, like `web` in a Procfile"),
  release: command
    .optional()
    .describe("The command that runs before a new deployment gets traffic, like `release` in a Procfile"),
  rehearse: z
    .enum(["auto", "always", "never"])
    .optional()
    .describe(
      "Whether the release command first runs on a copy of the data: `auto`, the default, if the copy is cheap or below 2 GiB",
    ),
  mask: folder
    .refine((path) => path.endsWith(".sql"), "must be an SQL file inside the folder, such as db/mask.sql")
    .optional()
    .describe(
      "SQL that changes what people must not see in a branch of the database, before anybody can reach it; a branch is masked on request",
    ),
  processes: z
    .record(
      z
        .string()
        .regex(
          /^(?!web$|release$)[A-Za-z0-9_-]{1,32}$/,
          "use 1 to 32 letters, digits, - and _; for web and release, use the fields `start` and `release`",
        ),
      command,
    )
    .refine((types) => Object.keys(types).length <= limits.process_types, {
      message: `must have at most ${limits.process_types} process types`,
    })
    .meta({ maxProperties: limits.process_types })
    .optional()
    .describe("The commands of process types that serve no requests, such as worker"),
  dockerfile: z
    .string()
    .min(1)
    .max(512)
    .regex(
      /^(?!\/)(?!.*(?:^|\/)\.\.?(?:\/|$))[^\0\\]*[^\0\\/]$/,
      "must be a file inside the folder, such as docker/Dockerfile",
    )
    .optional()
    .describe("The Dockerfile to build where applications run in containers"),
  target: z
    .string()
    .regex(/^[A-Za-z][\w.-]{0,127}$/, "must be the name of a stage: FROM … AS <name>")
    .optional()
    .describe("The stage of the Dockerfile to build, by default the last one"),
  storage: z
    .string()
    .max(512)
    .regex(
      /^(?!.*\/\.\.?(?:\/|$))\/(?!(?:app|boot|dev|etc|home|lib\w*|opt|proc|root|run|s?bin|sys|tmp|usr|var)$|(?:dev|proc|sys)\/)[\w@+.-]+(?:\/[\w@+.-]+)*$/,
      "must be the absolute path of a folder of its own, such as /data or /app/uploads",
    )
    .optional()
    .describe("Where the application expects its persistent folder, by default /storage; $STORAGE_DIR names it"),
  port: z
    .number()
    .int()
    .min(1)
    .max(65535)
    .optional()
    .describe("Where the application listens, when it does not read $PORT"),
  health_path: z
    .string()
    .max(512)
    .regex(/^\/(?![/\\])[^\s\\\u0000-\u001f\u007f-\u009f]*$/, "must start with one slash and contain no space")
    .optional()
    .describe("A path that responds with a status from 200 to 399 once the application is ready"),
  crons: z
    .array(cron)
    .max(100)
    .optional()
    .describe(
      "Requests that the platform sends, or commands that it runs, on a schedule; they take effect when the deployment goes live",
    ),
  watch: watchedPaths.optional(),
  lfs: z
    .literal("ignore")
    .optional()
    .describe("Deploys files of Git LFS as their pointers; without it, a push with such files is refused"),
});
export type BerthFile = z.output<typeof berthFile>;

export const berthFileSchema = {
  title: "berth.json",
  ...z.toJSONSchema(berthFile, { io: "input", unrepresentable: "any" }),
};

export type ReadBerthFile = { readonly file: BerthFile } | { readonly problems: readonly string[] };

/** Parses a `berth.json`. Each problem names its line or its field. */
export function readBerthFile(text: string): ReadBerthFile {
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    return { problems: [`berth.json is not valid JSON${placeOf(text, (error as Error).message)}.`] };
  }
  const parsed = berthFile.safeParse(value);
  if (parsed.success) return { file: parsed.data };
  return { problems: parsed.error.issues.flatMap((issue) => problemsOf(issue, text)) };
}

function problemsOf(issue: z.core.$ZodIssue, text: string): string[] {
  const path = issue.path.map(String);
  if (issue.code === "unrecognized_keys")
    return issue.keys.map(
      (key) =>
        `berth.json: ${[...path, key].join(".")}${lineOf(text, key)} is not a known field; the fields are ${known}.`,
    );
  // zod nests the rule that the key breaks in the issue about the key.
  const own = issue.code === "invalid_key" ? (issue.issues[0] ?? issue) : issue;
  const message = own.message.replace(/^(?:Invalid \w+|Too \w+): /, "");
  const where =
    path.length === 0 ? "" : ` ${path.join(".")}${lineOf(text, String(path.findLast((part) => !/^\d+$/.test(part))))}`;
  return [`berth.json:${where}: ${message}.`];
}

const known = Object.keys(berthFile.shape)
  .filter((name) => !name.startsWith("$"))
  .join(", ");

function lineOf(text: string, key: string): string {
  const at = text.indexOf(JSON.stringify(key));
  return at < 0 ? "" : ` (line ${text.slice(0, at).split("\n").length})`;
}

function placeOf(text: string, message: string): string {
  const line = /line (\d+)/.exec(message)?.[1];
  if (line !== undefined) return `, on line ${line}`;
  const position = /position (\d+)/.exec(message)?.[1];
  return position === undefined ? "" : `, on line ${text.slice(0, Number(position)).split("\n").length}`;
}
