import { resolve } from "node:path";
import type { Command } from "commander";
import type { Answer, Client } from "../../contract/client.ts";
import { shownStatus } from "../../contract/states.ts";
import { rehearsalLines } from "../../contract/rehearsal.ts";
import { bytesText } from "../../kit/bytes-text.ts";
import { addCommand, commandGroup, severalCommands, listCommand } from "../command-tree.ts";
import { currentProject, openProject, type CliContext } from "../context.ts";
import { awaitDeployment, failureOf, failureOfDeployment, followBuild, type Deployment } from "../follow.ts";
import { CliError, usageError } from "../failures.ts";
import { deploymentNumber, ifGiven, wholeNumber } from "../input.ts";
import { afterRestart } from "../../client/outcomes.ts";
import { linesText } from "../render/lines-text.ts";
import { paintStatus, duration, oneLine, relativeTime, type Paint } from "../render/text.ts";
import { confirm } from "../prompts.ts";
import { withProgress } from "../render/progress.ts";
import { archiveOf, sourceFiles } from "../source-files.ts";

export const addDeployments = severalCommands(() => [
  commandGroup({ name: "deployments", summary: "List deployments", commands: () => [addList] }),
  ...[addDeploy, addRollback, addCompare, addRehearsal, addRehearse],
]);

interface RehearseOptions {
  readonly ref?: string;
  readonly deployment?: string;
}

function addRehearse(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "rehearse",
    summary: "Build a branch and run its release command on a copy of the data; nothing goes live",
    examples: ["berth rehearse --ref feature/search", "berth rehearse --deployment 12 -p demo --json"],
  })
    .option("--ref <branch>", "a pushed branch; without it, the newest commit that went live")
    .option("--deployment <number>", "the commit of this deployment")
    .action(async ({ ref: branch, deployment: given }: RehearseOptions) => {
      const { slug, client } = await openProject(ctx);
      const body = { branch, deployment: ifGiven(given, deploymentNumber) };
      const { build_id: buildId } = await client.call("deployments.rehearse", { params: { slug }, body });
      ctx.goesOn = `The rehearsal goes on. Watch it with \`berth builds log ${buildId} -f\`, or end it with \`berth cancel ${buildId}\`.`;
      const { number } = await followToTheEnd(ctx, client, { slug, buildId });
      const document = await client.call("deployments.rehearsal", { params: { slug, number: String(number) } });
      ctx.output.result(document, (paint) => rehearsalText(document.rehearsal, paint));
    });
}

function addRehearsal(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "rehearsal <number>",
    summary: "Show what the release command of a deployment did to a copy of the data before it ran on the data itself",
    examples: ["berth rehearsal 12", "berth rehearsal 12 -p demo --json"],
  }).action(async (given: string) => {
    const number = String(deploymentNumber(given));
    const slug = await currentProject(ctx);
    const document = await (await ctx.client()).call("deployments.rehearsal", { params: { slug, number } });
    ctx.output.result(document, (paint) => rehearsalText(document.rehearsal, paint));
  });
}

function rehearsalText(rehearsal: Answer<"deployments.rehearsal">["rehearsal"], paint: Paint): string {
  if (rehearsal === null) return "The deployment has no release command, or is older than rehearsals.";
  const { status, reason, report, copy_bytes, method } = rehearsal;
  const how = method === "clone" ? "a clone" : "a full copy";
  return [
    `${paintStatus(paint, status)}${reason === null ? "" : `  ${oneLine(reason, 300)}`}`,
    ...(copy_bytes === null ? [] : [`on ${how} of ${bytesText(copy_bytes)}`]),
    ...(report === null ? [] : [`the command ran ${report.seconds.toFixed(1)} s there`, ...rehearsalLines(report)]),
  ].join("\n");
}

const addList = listCommand({
  row: "deployments.list",
  usage: "list",
  summary: "List the newest 100 deployments",
  isDefault: true,
  examples: ["berth deployments", "berth deployments list -p demo --json"],
  items: (answer) => answer.deployments,
  columns: {
    NUMBER: (row) => `#${row.number}`,
    STATUS: (row, paint) => paintStatus(paint, shownStatus(row)),
    COMMIT: (row) => row.commit.slice(0, 8),
    BY: (row) => (row.rehearse_only ? "rehearsal" : row.trigger),
    IMAGE: (row) => (row.image_bytes === null ? "" : bytesText(row.image_bytes)),
    CREATED: (row) => relativeTime(row.created_at),
    SERVED: (row) => (row.activated_at === null ? "" : duration(row.activated_at, row.retired_at)),
    NOTE: (row, _paint, all) => noteOf(row, all),
  },
  empty: "Nothing was deployed yet: push with git.",
});

function noteOf(row: Deployment, all: readonly Deployment[]): string {
  if (row.failure !== null) return `${row.failure.code}: ${oneLine(row.failure.summary, 60)}`;
  if (row.rolled_back_from === null) return "";
  const from = all.find((other) => other.id === row.rolled_back_from);
  return from === undefined ? "rolled back" : `rolled back from #${from.number}`;
}

function addDeploy(program: Command, ctx: CliContext): void {
  const examples = [
    "berth deploy",
    "berth deploy -p demo --commit 0123456789abcdef0123456789abcdef01234567",
    "berth deploy --dir .                   # this folder's files, without git",
    "berth deploy --image ghcr.io/acme/shop:1.4   # a ready container image",
    "berth deploy --no-wait --json",
  ];
  addCommand(program, {
    usage: "deploy",
    summary: "Build and deploy again, or deploy a folder or an image without git",
    examples,
  })
    .option("--dir <folder>", "deploy this folder's files; .gitignore and .berthignore leave files out")
    .option("-m, --message <text>", "the message of the commit that Berth creates from the folder's files")
    .option("--branch <branch>", "with --dir: into the preview of this branch, which is made if there is none")
    .option("--commit <hash>", "the full hash of a pushed commit; by default the newest one")
    .option("--image <name>", "deploy this container image; `berth registries` holds logins for private ones")
    .option("--no-wait", "don't wait for the outcome")
    .action(async (options: DeployOptions) => {
      const { slug, client } = await openProject(ctx);
      const begun = await beginDeploy(ctx, client, { slug, options });
      const preview = "preview" in begun ? begun.preview : null;
      if (preview !== null) ctx.output.note(() => preview.text);
      if (!options.wait)
        return ctx.output.result(
          begun,
          () => `Deploying ${begun.commit.slice(0, 8)} in the background: \`berth builds log ${begun.build_id}\``,
        );
      ctx.goesOn = `The deployment goes on. Watch it with \`berth builds log ${begun.build_id} -f\`, or end it with \`berth cancel ${begun.build_id}\`.`;
      const target = preview?.slug ?? slug;
      const deployment = await followToTheEnd(ctx, client, { slug: target, buildId: begun.build_id });
      return ctx.output.result(
        deployment,
        (paint) => `${paint.green("Live:")} deployment #${deployment.number} of ${target}`,
      );
    });
}

interface DeployOptions {
  readonly branch?: string;
  readonly commit?: string;
  readonly dir?: string;
  readonly image?: string;
  readonly message?: string;
  readonly wait: boolean;
}

async function beginDeploy(
  ctx: CliContext,
  client: Client,
  { slug, options }: { slug: string; options: DeployOptions },
): Promise<Answer<"builds.upload"> | Answer<"deployments.create">> {
  const { branch, commit, dir, image, message } = options;
  const params = { slug };
  if (dir === undefined) {
    if (message !== undefined) throw usageError("--message goes with --dir.");
    if (branch !== undefined) throw usageError("--branch goes with --dir.");
    if (image !== undefined && commit !== undefined) throw usageError("Give either --image or --commit.");
    const { signal } = ctx;
    const say = (line: string) => ctx.output.note(() => line);
    return afterRestart({ client, signal, say }, slug, () =>
      client.call("deployments.create", { params, body: { commit, image }, signal }),
    );
  }
  if (commit !== undefined || image !== undefined)
    throw usageError(`Give either --dir or --${image === undefined ? "commit" : "image"}.`);
  const folder = resolve(ctx.environment.cwd, dir);
  const files = await sourceFiles(ctx.environment, folder);
  const upload = () =>
    client.call("builds.upload", {
      ...{ params, signal: ctx.signal, upload: archiveOf(folder, files) },
      query: { message, branch },
    });
  return withProgress(ctx, `Sending ${files.length} ${files.length === 1 ? "file" : "files"}`, upload);
}

/** Follows a build and its deployment; throws when one fails. With --json, the log is not printed, so that stdout has one document. */
export async function followToTheEnd(
  ctx: CliContext,
  client: Client,
  { slug, buildId }: { slug: string; buildId: string },
): Promise<Deployment> {
  const write = (text: string) => {
    if (ctx.options.json !== true) ctx.output.application(text);
  };
  const build = await followBuild(ctx, client, buildId, write);
  const broken = failureOf(build);
  if (broken !== undefined) throw broken;
  const deployment = await withProgress(ctx, "Waiting for the deployment", () =>
    awaitDeployment(ctx, client, slug, build),
  );
  const failure = failureOfDeployment(deployment);
  if (failure !== undefined) throw failure;
  return deployment;
}

function addCompare(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "compare [from] [to]",
    summary:
      "Show what changed between two deployments; without numbers, the newest one and the one that served before it",
    examples: [
      "berth compare",
      "berth compare 12 15",
      "berth compare 12 --lines",
      "berth compare --file src/app.js --json",
      "berth compare --build 7",
    ],
  })
    .option("--lines", "the commits between them, and the lines that differ in each file")
    .option("--file <path>", "the lines that differ in this file")
    .option("--build <number>", "the lines that differ in this build, also a failed one, from what serves")
    .action(async (...given: [string | undefined, string | undefined, CompareOptions]) => {
      const [from, to] = given
        .slice(0, 2)
        .map((each) => (typeof each === "string" ? deploymentNumber(each) : undefined));
      const { lines, file: path, build: numbered } = given[2];
      const build = ifGiven(numbered, (text) => wholeNumber(text, "--build", { least: 1, most: 2_147_483_647 }));
      if (build !== undefined && to !== undefined) throw usageError("Give either a second deployment or --build.");
      const { slug, client } = await openProject(ctx);
      const numbers = { params: { slug }, query: { from, to } };
      if (lines !== true && path === undefined && build === undefined) {
        const document = await client.call("deployments.compare", numbers);
        return ctx.output.result(document, () => comparisonText(document));
      }
      const query = { from, to, build, path };
      const document = await client.call("deployments.lines", { params: { slug }, query });
      return ctx.output.result(document, (paint) => linesText(document, paint));
    });
}

interface CompareOptions {
  readonly lines?: boolean;
  readonly file?: string;
  readonly build?: string;
}

function comparisonText({ from, to, files, variables, settings }: Answer<"deployments.compare">): string {
  const title = ({ number, commit, message }: typeof from) =>
    `#${number}  ${commit.slice(0, 8)}  ${oneLine(message, 60)}`;
  const shown = (value: string | number | null) => (value === null ? "unset" : String(value));
  const lines = [
    `from  ${title(from)}`,
    `to    ${title(to)}`,
    ...(files ?? []).map((path) => `file      ${oneLine(path, 200)}`),
    ...(files === null ? ["file      unknown: a commit is no longer kept"] : []),
    ...variables.added.map((key) => `variable  + ${key}`),
    ...variables.removed.map((key) => `variable  - ${key}`),
    ...variables.changed.map((key) => `variable  ~ ${key}`),
    ...settings.map((each) => `setting   ${each.name}: ${shown(each.from)} -> ${shown(each.to)}`),
  ];
  return lines.length === 2 ? [...lines, "Nothing else differs."].join("\n") : lines.join("\n");
}

function addRollback(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "rollback [number]",
    summary: "Go back to the image and variables of the last good earlier deployment, or of the one with this number",
    examples: ["berth rollback", "berth rollback 12", "berth rollback 12 --with-data", "berth rollback -p demo --json"],
  })
    .option("--with-data", "also go back to the database as it was before the next deployment served (owners only)")
    .option("-y, --yes", "don't ask before the data changes")
    .action(async (given: string | undefined, options: { withData?: boolean; yes?: boolean }) => {
      const number = ifGiven(given, deploymentNumber);
      const slug = await currentProject(ctx);
      return options.withData === true ? rollBackWithData(ctx, slug, number, options.yes) : rollBack(ctx, slug, number);
    });
}

/** Restores the database as it was before the deployment that replaced the wanted one, then promotes it and rolls back in one step. */
async function rollBackWithData(ctx: CliContext, slug: string, number: number | undefined, yes: boolean | undefined) {
  const client = await ctx.client();
  const { health } = await client.call("projects.get", { params: { slug } });
  const to = number ?? health?.rollback?.to;
  const { deployments } = await client.call("deployments.list", { params: { slug }, query: { limit: 100 } });
  // A later one than these may have replaced a deployment that is not among them.
  const at = deployments.findIndex((each) => each.number === to);
  const next = deployments.slice(0, Math.max(0, at)).findLast((each) => each.activated_at !== null)?.number;
  const from = deployments.find(({ status }) => status === "active")?.number;
  if (to === undefined || next === undefined)
    throw new CliError("refused", "nothing_to_roll_back", {
      message:
        to === undefined
          ? `There is no earlier deployment of ${slug} to go back to.`
          : `None of the newest 100 deployments of ${slug} has replaced #${to}.`,
      hint: "`berth deployments` lists their numbers.",
    });
  const what = `This brings ${slug} back to deployment #${to}, and its database to the moment before deployment #${next}; what is live now is kept beside it.`;
  await confirm(ctx, what, { name: slug, yes });
  const { signal } = ctx;
  const params = { slug };
  const { database } = await withProgress(ctx, `Restoring the data of before #${next}`, () =>
    client.call("backups.restore", { params, body: { before_deployment: next }, signal }),
  );
  const body = { database: database ?? "", deployment: to };
  const promoted = await withProgress(ctx, `Rolling ${slug} back`, () =>
    client.call("backups.promote", { params, body, signal }),
  );
  ctx.output.result(
    promoted,
    (paint) => `${paint.green("Rolled back:")} ${slug} to #${to}, with the data of before #${next}`,
  );
  const undo = `berth backups promote ${promoted.previous}${from === undefined ? "" : ` --deployment ${from}`}`;
  ctx.output.note(() => `\`${undo}\` goes forward again.`);
}

async function rollBack(ctx: CliContext, slug: string, deployment: number | undefined): Promise<void> {
  const client = await ctx.client();
  const { signal } = ctx;
  const document = await withProgress(ctx, `Rolling ${slug} back`, (say) =>
    afterRestart({ client, signal, say }, slug, () =>
      client.call("deployments.rollback", { params: { slug }, body: { deployment }, signal }),
    ),
  );
  const { number, commit } = document.deployment;
  const { from, to, changed_variables: changed, newer_branch: branch } = document;
  if (changed.length > 0) ctx.output.note(() => `The rollback changed these variables: ${changed.join(", ")}`);
  if (branch !== null)
    ctx.output.note(() => `${branch} still holds the newer commits: the next push or \`berth deploy\` deploys them.`);
  ctx.output.result(
    document,
    (paint) =>
      `${paint.green("Rolled back:")} ${slug} from #${from} to #${to}, as deployment #${number} (commit ${commit.slice(0, 8)})`,
  );
}
