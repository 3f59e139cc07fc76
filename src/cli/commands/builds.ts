import type { Command } from "commander";
import { addCommand, commandGroup, severalCommands, listCommand, rowCommand } from "../command-tree.ts";
import type { Answer, Client } from "../../contract/client.ts";
import { bytesText } from "../../kit/bytes-text.ts";
import { currentProject, type CliContext } from "../context.ts";
import { CliError } from "../failures.ts";
import { awaitBuild, failureOf, readBuildLog } from "../follow.ts";
import { renderFailure } from "../render/failure.ts";
import { paintStatus, facts, duration, oneLine, relativeTime } from "../render/text.ts";

export const addBuilds = severalCommands(() => [
  commandGroup({
    name: "builds",
    summary: "List builds and read their logs",
    commands: () => [addList, addShow, addLog],
  }),
  addCancel,
]);

function addCancel(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "cancel [build]",
    summary: "Cancel a build or a deployment that is not live yet; without an id, the newest one",
    examples: ["berth cancel", "berth cancel -p demo", "berth cancel bld_06bq…"],
  }).action(async (given: string | undefined) => {
    const client = await ctx.client();
    const id = given ?? (await newestBuild(ctx, client));
    const build = await client.call("builds.cancel", { params: { id } });
    ctx.output.result(build, () => `Cancelled build #${build.number}. What was live before it still serves.`);
  });
}

const addList = listCommand({
  row: "builds.list",
  usage: "list",
  summary: "List the newest 100 builds",
  isDefault: true,
  examples: ["berth builds", "berth builds list -p demo --json"],
  items: (answer) => answer.builds,
  columns: {
    NUMBER: (build) => `#${build.number}`,
    STATUS: (build, paint) => paintStatus(paint, build.status),
    COMMIT: (build) => build.commit.slice(0, 8),
    BRANCH: (build) => oneLine(build.branch, 20),
    CREATED: (build) => relativeTime(build.created_at),
    TOOK: (build) => (build.started_at === null ? "" : duration(build.started_at, build.finished_at)),
    ID: (build) => build.id,
    MESSAGE: (build) => oneLine(build.message, 50),
  },
  empty: "Nothing was built yet: push with git.",
});

const addShow = rowCommand({
  row: "builds.get",
  usage: "show <id>",
  summary: "Show one build, and why it failed",
  examples: ["berth builds show bld_06bq…"],
  text: (build, paint) => {
    const text = facts(paint, [
      ["build", paint.bold(`#${build.number}`)],
      ["id", build.id],
      ["status", paintStatus(paint, build.status)],
      ["commit", build.commit],
      ["branch", oneLine(build.branch)],
      ["message", oneLine(build.message, 100)],
      ["author", build.author && oneLine(build.author)],
      ["image", build.image_ref ?? "none"],
      ["size", build.deployment?.image_bytes ? bytesText(build.deployment.image_bytes) : null],
      ["deployment", build.deployment && `#${build.deployment.number} ${build.deployment.status}`],
      ["created", relativeTime(build.created_at)],
      ["took", build.started_at === null ? null : duration(build.started_at, build.finished_at)],
    ]);
    const failure = build.failure ?? build.deployment?.failure ?? null;
    return failure === null ? text : `${text}\n\n${renderFailure(paint, failure)}`;
  },
});

function addLog(builds: Command, ctx: CliContext): void {
  addCommand(builds, {
    usage: "log [id]",
    summary: "Print a build's log; without an id, the newest build's",
    examples: ["berth builds log", "berth builds log bld_06bq… --follow", "berth builds log -f --json"],
  })
    .option(
      "-f, --follow",
      "follow the log until the build and its deployment have ended; exit code 7 when either failed",
    )
    .action(async (given: string | undefined, options: { follow?: boolean }) => {
      const client = await ctx.client();
      const id = given ?? (await newestBuild(ctx, client));
      await printLog(ctx, client, { id, follow: options.follow === true });
    });
}

// With --json, one document holds the whole log.
async function printLog(ctx: CliContext, client: Client, { id, follow }: { id: string; follow: boolean }) {
  let log = "";
  let times: Answer<"builds.logs">["times"] = [];
  const write = (text: string, found: typeof times) => {
    if (ctx.options.json !== true) return ctx.output.application(text);
    const linesBefore = log.split("\n").length - 1;
    times = [...times, ...found.map(({ line, at }) => ({ line: line + linesBefore, at }))];
    log += text;
  };
  const last = await readBuildLog(ctx, client, { id, follow, write });
  if (ctx.options.json === true) ctx.output.result({ ...last, log, times }, () => "");
  if (!follow) return;
  const failure = failureOf(await awaitBuild(ctx, client, id));
  if (failure !== undefined) throw failure;
}

async function newestBuild(ctx: CliContext, client: Client): Promise<string> {
  const slug = await currentProject(ctx);
  const { builds } = await client.call("builds.list", { params: { slug } });
  if (builds[0] === undefined) throw new CliError("notFound", "not_found", { message: `${slug} has no builds yet.` });
  return builds[0].id;
}
