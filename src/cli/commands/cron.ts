import type { Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { limits } from "../../contract/limits.ts";
import { addCommand, commandGroup, actCommand, listCommand, rowCommand } from "../command-tree.ts";
import { currentProject, openProject, type CliContext } from "../context.ts";
import { usageError } from "../failures.ts";
import { readInput } from "../input.ts";
import { paintStatus, oneLine, relativeTime } from "../render/text.ts";

export const addCron = commandGroup({
  name: "cron",
  summary: "List, set, import and run cron jobs",
  commands: () => [
    addList,
    addSet,
    addImport,
    addRuns,
    addRun,
    rowCommand({
      row: "cron.restore",
      usage: "restore <name>",
      summary: "Bring back what the last change of a job replaced",
      examples: ["berth cron restore nightly"],
      text: (job) =>
        `${job.name}: ${job.schedule} ${oneLine(job.path ?? job.command ?? "", 80)}${job.enabled ? "" : ", disabled"}.`,
    }),
    addRemove,
  ],
});

const addList = listCommand({
  row: "cron.list",
  usage: "list",
  summary: `List the cron jobs, the newest ${limits.cron_jobs_listed}`,
  isDefault: true,
  examples: ["berth cron", "berth cron list -p demo --json"],
  items: (answer) => answer.jobs,
  columns: {
    NAME: (job) => job.name,
    "SCHEDULE (UTC)": (job) => job.schedule,
    "PATH OR COMMAND": (job) => oneLine(job.path ?? job.command ?? "", 50),
    LAST: (job, paint) => (job.last_status === null ? "" : paintStatus(paint, job.last_status)),
    "LAST RUN": (job) => relativeTime(job.last_run_at),
    "NEXT RUN": (job) => (job.next_run_at === null ? "disabled" : relativeTime(job.next_run_at)),
  },
  empty:
    "There are no cron jobs yet: `berth cron set <name> <schedule> <path>` makes one, and --command instead of the path one that runs a command.",
});

function addSet(cron: Command, ctx: CliContext): void {
  addCommand(cron, {
    usage: "set <name> <schedule> [path]",
    summary: "Create or change a job that calls a path or runs a command; the schedule has five numeric fields, in UTC",
    examples: [
      'berth cron set nightly "0 3 * * *" /tasks/nightly',
      'berth cron set every-5-min "*/5 * * * *" "/poll?source=mail"',
      'berth cron set reports "0 6 * * 1" --command "python manage.py send_reports"',
      'berth cron set nightly "0 3 * * *" /tasks/nightly --disabled',
    ],
  })
    .option("--command <line>", "instead of the path: a command line, run in the application's image")
    .option("--disabled", "keep the job, but don't run it")
    .action(
      async (
        name: string,
        schedule: string,
        path: string | undefined,
        options: { disabled?: boolean; command?: string },
      ) => {
        const { slug, client } = await openProject(ctx);
        const { command, disabled } = options;
        if ((path === undefined) === (command === undefined))
          throw usageError("Give either a path to call or --command with a command line to run.");
        const work = command === undefined ? { path } : { command };
        const body = { ...work, schedule, enabled: disabled !== true };
        const job = await client.call("cron.set", { params: { slug, name }, body });
        ctx.output.result(job, () =>
          job.next_run_at === null
            ? `${job.name} is disabled.`
            : `${job.name} runs next ${relativeTime(job.next_run_at)}, at ${job.next_run_at}.`,
        );
      },
    );
}

function addImport(cron: Command, ctx: CliContext): void {
  addCommand(cron, {
    usage: "import [file]",
    summary: "Import the crons of a vercel.json, all of them or none; nothing is removed",
    examples: ["berth cron import", "berth cron import ../site/vercel.json"],
  }).action(async (file: string | undefined) => {
    const slug = await currentProject(ctx);
    const crons = readCrons(await readInput(ctx, file ?? "vercel.json"), file ?? "vercel.json");
    const document = await (await ctx.client()).call("cron.import", { params: { slug }, body: { crons } });
    ctx.output.result(
      document,
      () => `Imported ${document.imported}${document.imported === 0 ? "" : `: ${document.jobs.join(", ")}`}.`,
    );
  });
}

type Crons = { path?: string; command?: string; schedule: string }[];

/** Reads the list of jobs; the platform validates its entries. */
function readCrons(text: string, file: string): Crons {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    throw usageError(`${file} is not JSON.`);
  }
  const crons = (document as { crons?: unknown } | null)?.crons;
  if (!Array.isArray(crons)) throw usageError(`${file} has no list "crons".`);
  return crons as Crons;
}

const addRuns = listCommand({
  row: "cron.runs",
  usage: "runs <name>",
  summary: `List a job's newest ${limits.cron_runs_listed} runs`,
  examples: ["berth cron runs nightly", "berth cron runs nightly --json"],
  items: (answer) => answer.runs,
  columns: {
    DUE: (run) => run.scheduled_at.replace(".000Z", "Z"),
    BY: (run) => (run.trigger === "manual" ? "by hand" : "schedule"),
    STATUS: (run, paint) => paintStatus(paint, run.status),
    OUTCOME: outcomeOf,
    TOOK: (run) => (run.duration_ms === null ? "" : `${run.duration_ms} ms`),
    ANSWER: (run) => oneLine(run.response_excerpt ?? "", 50),
  },
  empty: "It has not run yet.",
});

function outcomeOf(run: Answer<"cron.runs">["runs"][number]): string {
  const exit = run.exit_code === null ? undefined : `exit code ${run.exit_code}`;
  const parts = [run.http_status?.toString() ?? exit, run.reason?.replaceAll("_", " ")];
  return parts.filter((part) => part !== undefined).join(", ");
}

const addRun = rowCommand({
  row: "cron.run",
  usage: "run <name>",
  summary: "Run a job now, beside its schedule",
  examples: ["berth cron run nightly"],
  text: (run, _paint, { words: { name } }) =>
    run.status === "skipped"
      ? `Skipped: another run of ${name} is under way.`
      : `${name} is running: \`berth cron runs ${name}\` shows how it ends.`,
});

const addRemove = actCommand({
  row: "cron.delete",
  usage: "remove <name>",
  summary: "Remove a job and its runs",
  examples: ["berth cron remove nightly", "berth cron remove nightly --yes"],
  warning: ({ words: { name = "", slug } }) =>
    `This removes the cron job ${name} of ${slug} with the list of its runs.`,
  text: (_, _paint, { words }) => `Removed ${words.name}.`,
});
