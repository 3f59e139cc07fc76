import type { Command } from "commander";
import { isSystemVariable } from "../../contract/env.ts";
import { envFileProblems, readEnvFile } from "../../contract/env-file.ts";
import { route } from "../../contract/routes.ts";
import { addCommand, commandGroup, listCommand, rowCommand } from "../command-tree.ts";
import { currentProject, openProject, type CliContext } from "../context.ts";
import { CliError, usageError } from "../failures.ts";
import { failureOfDeployment } from "../follow.ts";
import { readInput, wholeNumber } from "../input.ts";
import { watchVariables } from "../../client/outcomes.ts";
import { confirm } from "../prompts.ts";
import { withProgress } from "../render/progress.ts";
import { relativeTime } from "../render/text.ts";

/** Adds `berth env`: the variables of a project. Texts printed here never contain a value. */
export const addEnv = commandGroup({
  name: "env",
  summary: "List, set, restore and remove environment variables",
  commands: () => [addList, addSet, addImport, addExport, addRestore, addUnset],
});

const addExport = rowCommand({
  row: "env.list",
  usage: "export",
  summary: "Print the names of your variables as lines # KEY=, to fill in and import elsewhere; values are never shown",
  examples: ["berth env export > .env.example"],
  text: ({ variables }) =>
    variables
      .filter(({ system }) => !system)
      .map(({ key }) => `# ${key}=`)
      .join("\n"),
});

function addImport(env: Command, ctx: CliContext): void {
  addCommand(env, {
    usage: "import <file>",
    summary: "Set the variables of a .env file with lines KEY=VALUE; KEY= is the empty value",
    examples: ["berth env import .env", "berth env import - < .env.production"],
  })
    .option("-y, --yes", "don't ask before a line KEY= empties a variable that the project has")
    .option("-w, --wait", waitText)
    .action(async (file: string, options: { yes?: boolean; wait?: boolean }) => {
      const given = parseFile(await readInput(ctx, file), file);
      const slug = await currentProject(ctx);
      checkVariables(slug, given);
      const empty = given.flatMap(([key, value]) => (value === "" ? [key] : []));
      const { variables } = await (await ctx.client()).call("env.list", { params: { slug } });
      const emptied = empty.filter((key) => variables.some((each) => each.key === key));
      if (emptied.length > 0)
        await confirm(ctx, `This empties ${emptied.join(", ")} of ${slug}.`, { name: slug, yes: options.yes });
      await setVariables(ctx, slug, given, options.wait);
    });
}

type Variables = readonly (readonly [key: string, value: string])[];

const addList = listCommand({
  row: "env.list",
  usage: "list",
  summary: "List the variables' names",
  isDefault: true,
  examples: ["berth env", "berth env list -p demo --json"],
  items: (answer) => answer.variables,
  columns: {
    NAME: ({ key }) => key,
    VALUE: ({ value }) => value,
    "SET BY": ({ system }) => (system ? "the platform" : "you"),
    CHANGED: ({ updated_at }) => (updated_at === null ? "" : relativeTime(updated_at)),
  },
  empty: "There are no variables.",
});

function addSet(env: Command, ctx: CliContext): void {
  const examples = [
    "berth env set GREETING=hello LANGUAGE=en",
    "berth env set API_KEY - < key.txt     # a value from stdin, kept out of the shell's history",
    "berth env set --from-file .env --wait",
  ];
  addCommand(env, { usage: "set [pairs...]", summary: "Set variables and restart the application with them", examples })
    .option("--from-file <file>", "a file with lines KEY=VALUE; - is stdin")
    .option("-w, --wait", waitText)
    // Allowed, because a value may begin with a dash and commander's error would repeat it.
    .allowUnknownOption()
    .action(async (pairs: string[], options: { fromFile?: string; wait?: boolean }) => {
      const variables = await readVariables(ctx, pairs, options.fromFile);
      const slug = await currentProject(ctx);
      checkVariables(slug, variables);
      await setVariables(ctx, slug, variables, options.wait);
    });
}

const waitText = "wait until the application runs with the change; exit code 7 when it does not start";

interface Change {
  readonly change: () => Promise<unknown>;
  readonly said: string;
  readonly wait: boolean | undefined;
}

/** Changes variables. With `wait`, prints the resulting deployment or throws its failure. */
async function changeVariables(ctx: CliContext, slug: string, { change, said, wait }: Change): Promise<void> {
  if (wait !== true) {
    await change();
    ctx.output.note(() => `${said} If ${slug} runs, it restarts with the change in a few seconds.`);
    return;
  }
  const client = await ctx.client();
  ctx.goesOn = `The restart of ${slug} goes on; \`berth deployments\` shows how it ends.`;
  const deployment = await withProgress(ctx, `Restarting ${slug}`, async (say) => {
    const restarted = await watchVariables({ client, signal: ctx.signal, say }, slug);
    await change();
    return restarted();
  });
  const failure = deployment === null ? undefined : failureOfDeployment(deployment);
  if (failure !== undefined) throw failure;
  ctx.output.result(deployment, (paint) =>
    deployment === null
      ? `${said} Nothing restarts: ${slug} is not deployed, or had these values already.`
      : `${said} ${paint.green("Live:")} deployment #${deployment.number} of ${slug}`,
  );
}

async function readVariables(ctx: CliContext, pairs: readonly string[], file: string | undefined): Promise<Variables> {
  if (file !== undefined && pairs.length > 0) throw usageError("Give either --from-file or KEY=VALUE pairs.");
  if (file !== undefined) return parseFile(await readInput(ctx, file), file);
  if (pairs.length === 0) throw usageError("Which variables?", "berth env set KEY=VALUE …");
  if (pairs.length === 2 && pairs[1] === "-") {
    // Remove the line break that `echo value |` adds.
    return [[pairs[0] as string, (await readInput(ctx, "-")).replace(/\r?\n$/, "")]];
  }
  return pairs.map(parsePair);
}

function parsePair(pair: string, index: number): readonly [string, string] {
  const at = pair.indexOf("=");
  if (at <= 0 || pair.startsWith("-"))
    throw usageError(
      `Argument ${index + 1} is not of the form KEY=VALUE.`,
      "For a value from stdin: berth env set KEY -",
    );
  return [pair.slice(0, at), pair.slice(at + 1)];
}

function parseFile(text: string, file: string): Variables {
  const lines = readEnvFile(text);
  const problems = envFileProblems(lines);
  const name = file === "-" ? "The input" : file;
  if (problems.length > 0)
    throw usageError(
      `${name}, ${problems.slice(0, 20).join("; ")}.`,
      "Nothing was changed. Mend the file, then repeat.",
    );
  if (lines.length === 0) throw usageError(`${name} has no line KEY=VALUE.`);
  return [...new Map(lines.map(({ key, value }) => [key as string, value]))];
}

// Checks all variables before the first is sent, so that a typo in the last one leaves nothing half done.
function checkVariables(slug: string, variables: Variables): void {
  const { params, body } = route("env.set");
  for (const [key, value] of variables) {
    const issue = params.safeParse({ slug, key }).error?.issues[0] ?? body?.safeParse({ value }).error?.issues[0];
    if (issue !== undefined)
      throw usageError(`${/^\w{1,128}$/.test(key) ? key : "A variable's name"}: ${issue.message}.`);
  }
  const ofPlatform = variables.flatMap(([key]) => (isSystemVariable(key) ? [key] : []));
  if (ofPlatform.length > 0)
    throw new CliError("conflict", "system_variable", {
      message: `The platform sets ${ofPlatform.join(", ")} itself.`,
      hint: `Nothing was changed. Leave ${ofPlatform.length === 1 ? "it" : "them"} out.`,
    });
}

/** Sets the variables in one call, and names those whose new value is empty. */
async function setVariables(ctx: CliContext, slug: string, given: Variables, wait: boolean | undefined): Promise<void> {
  const client = await ctx.client();
  const variables = Object.fromEntries(given);
  const change = () => client.call("env.import", { params: { slug }, body: { variables } });
  const names = given.map(([key, value]) => (value === "" ? `${key} (empty)` : key));
  await changeVariables(ctx, slug, { change, said: `Set ${names.join(", ")}.`, wait });
}

function addRestore(env: Command, ctx: CliContext): void {
  addCommand(env, {
    usage: "restore <key>",
    summary: "Set a variable to the value that it had in an earlier deployment, without showing it",
    examples: ["berth env restore API_KEY --from 12"],
  })
    .requiredOption("--from <number>", "the deployment's number; `berth deployments` lists them")
    .option("-w, --wait", waitText)
    .action(async (key: string, options: { from: string; wait?: boolean }) => {
      const from_deployment = wholeNumber(options.from.replace(/^#/, ""), "--from", { least: 1, most: 2_147_483_647 });
      const { slug, client } = await openProject(ctx);
      const change = () => client.call("env.set", { params: { slug, key }, body: { from_deployment } });
      const said = `${key} has the value of deployment #${from_deployment} again.`;
      await changeVariables(ctx, slug, { change, said, wait: options.wait });
    });
}

function addUnset(env: Command, ctx: CliContext): void {
  addCommand(env, {
    usage: "unset <keys...>",
    summary: "Remove variables and restart the application without them",
    examples: ["berth env unset GREETING LANGUAGE", "berth env unset API_KEY --yes"],
  })
    .option("-y, --yes", "don't ask")
    .option("-w, --wait", waitText)
    .action(async (keys: string[], options: { yes?: boolean; wait?: boolean }) => {
      const { slug, client } = await openProject(ctx);
      const { variables } = await client.call("env.list", { params: { slug } });
      const missing = keys.filter((key) => !variables.some((variable) => variable.key === key));
      if (missing.length > 0)
        throw new CliError("notFound", "not_found", {
          message: `${slug} has no variable ${missing.join(", ")}.`,
          hint: "Nothing was changed. `berth env` lists the variables.",
        });
      await confirm(ctx, `This removes ${keys.join(", ")} from ${slug}.`, { name: slug, yes: options.yes });
      const change = async () => {
        for (const key of keys) await client.call("env.delete", { params: { slug, key } });
      };
      await changeVariables(ctx, slug, { change, said: `Removed ${keys.join(", ")}.`, wait: options.wait });
    });
}
