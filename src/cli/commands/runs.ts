import { Option, type Command } from "commander";
import { addCommand, commandGroup, severalCommands, listCommand } from "../command-tree.ts";
import { currentProject, openProject, type CliContext } from "../context.ts";
import { usageError } from "../failures.ts";
import { followRun, printRun } from "../follow-run.ts";
import { wholeNumber } from "../input.ts";
import { runInTerminal } from "../run-in-terminal.ts";
import { shellLine } from "../shell-line.ts";
import { duration, oneLine, relativeTime } from "../render/text.ts";

export const addRuns = severalCommands(() => [
  addRun,
  commandGroup({ name: "runs", summary: "List one-off commands", commands: () => [addList, addLog, addCancel] }),
]);

interface RunOptions {
  interactive?: boolean;
  tty?: boolean;
  detach?: boolean;
  timeout?: string;
  deployment?: string;
}

function addRun(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "run <command...>",
    summary: "Run a command once in the application's image, with its variables, database and storage",
    examples: [
      "berth run -- npm run seed",
      "berth run -it -- bash",
      "berth run --detach -- python manage.py reindex",
      "berth run -p demo 'ls | wc -l'",
    ],
  })
    .usage("[options] -- <command...>")
    .option("-d, --detach", "don't wait; `berth runs log <number>` shows the output")
    .option("-i, --interactive", "with a terminal, as -it: for a shell and what asks questions")
    .addOption(new Option("-t, --tty").hideHelp())
    .option("--timeout <seconds>", "end the command after this many seconds (default: 600, in a terminal 14400)")
    .option("--deployment <number>", "in the image of this deployment; by default the active one")
    .action(async (words: string[], options: RunOptions) => {
      const terminal = options.interactive === true || options.tty === true;
      if (terminal && options.detach === true)
        throw usageError("Leave out --detach: a terminal ends with your connection.");
      const { slug, client } = await openProject(ctx);
      const given = options.timeout ?? (terminal ? "14400" : "600");
      const timeout_seconds = wholeNumber(given, "--timeout", { least: 1, most: 86_400 });
      const deployment =
        options.deployment === undefined
          ? {}
          : { deployment: wholeNumber(options.deployment, "--deployment", { least: 1, most: 999_999_999 }) };
      const body = { command: shellLine(words), timeout_seconds, wait_seconds: 0, terminal, ...deployment };
      const begun = await client.call("runs.create", { params: { slug }, body });
      if (terminal) return runInTerminal(ctx, slug, begun.run.number);
      if (options.detach === true)
        return ctx.output.result(begun, () => `Running in the background: \`berth runs log ${begun.run.number} -f\``);
      return await followRun(ctx, client, { slug, begun });
    });
}

const addList = listCommand({
  row: "runs.list",
  usage: "list",
  summary: "List the newest 100",
  isDefault: true,
  examples: ["berth runs", "berth runs list -p demo --json"],
  items: (answer) => answer.runs,
  columns: {
    NUMBER: (run) => String(run.number),
    STATUS: (run) => run.status,
    CODE: (run) => (run.exit_code === null ? "" : String(run.exit_code)),
    DEPLOYMENT: (run) => `#${run.deployment}`,
    CREATED: (run) => relativeTime(run.created_at),
    TOOK: (run) => (run.started_at === null ? "" : duration(run.started_at, run.finished_at)),
    COMMAND: (run) => oneLine(run.command).slice(0, 60),
  },
  empty: "No command was run yet: `berth run -- <command>`",
});

const runNumber = (text: string): number => wholeNumber(text, "The run", { least: 1, most: 999_999_999 });

function addLog(runs: Command, ctx: CliContext): void {
  const examples = ["berth runs log 3", "berth runs log 3 -f"];
  addCommand(runs, { usage: "log <number>", summary: "Print what a command wrote", examples })
    .option("-f, --follow", "follow the output until the command ends")
    .action(async (given: string, { follow = false }: { follow?: boolean }) => {
      const slug = await currentProject(ctx);
      const found = await printRun(ctx, await ctx.client(), { slug, number: runNumber(given), follow });
      if (ctx.options.json === true) ctx.output.result(found, () => "");
    });
}

function addCancel(runs: Command, ctx: CliContext): void {
  const examples = ["berth runs cancel 3"];
  addCommand(runs, { usage: "cancel <number>", summary: "End a command", examples }).action(async (given: string) => {
    const slug = await currentProject(ctx);
    const number = String(runNumber(given));
    const document = await (await ctx.client()).call("runs.cancel", { params: { slug, number } });
    ctx.output.result(document, () => `Command ${number} of ${slug} ends.`);
  });
}
