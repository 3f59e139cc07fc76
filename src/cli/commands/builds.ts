import type { Command } from "commander";
import { addCommand, addGroup } from "../command-tree.ts";
import type { Client } from "../../contract/client.ts";
import type { CliContext } from "../context.ts";
import { currentProject } from "../current-project.ts";
import { CliError } from "../failures.ts";
import { followBuild, patiently } from "../follow.ts";
import { renderFailure } from "../render/failure.ts";
import { paintStatus } from "../render/paint.ts";
import { facts, table } from "../render/table.ts";
import { duration, oneLine, relativeTime, terminalText } from "../render/text.ts";

/** `berth builds`: what was built, and how it went. */
export function addBuilds(program: Command, ctx: CliContext): void {
  const builds = addGroup(program, "builds", "List builds and read their logs");
  addList(builds, ctx);
  addShow(builds, ctx);
  addLog(builds, ctx);
}

function addList(builds: Command, ctx: CliContext): void {
  addCommand(builds, {
    usage: "list",
    summary: "List the newest 100 builds",
    isDefault: true,
    examples: ["berth builds", "berth builds list -p demo --json"],
  }).action(async () => {
    const slug = await currentProject(ctx);
    const document = await (await ctx.client()).call("builds.list", { params: { slug } });
    ctx.output.result(document, (paint) => {
      const rows = document.builds.map((build) => [
        `#${build.number}`,
        paintStatus(paint, build.status),
        build.commit.slice(0, 8),
        oneLine(build.branch, 20),
        relativeTime(build.created_at),
        build.started_at === null ? "" : duration(build.started_at, build.finished_at),
        build.id,
        oneLine(build.message, 50),
      ]);
      return table(
        paint,
        ["NUMBER", "STATUS", "COMMIT", "BRANCH", "CREATED", "TOOK", "ID", "MESSAGE"],
        rows,
        "Nothing was built yet: push with git.",
      );
    });
  });
}

function addShow(builds: Command, ctx: CliContext): void {
  addCommand(builds, {
    usage: "show <id>",
    summary: "Show one build, and why it failed",
    examples: ["berth builds show bld_06bq…"],
  }).action(async (id: string) => {
    const build = await (await ctx.client()).call("builds.get", { params: { id } });
    ctx.output.result(build, (paint) => {
      const text = facts(paint, [
        ["build", paint.bold(`#${build.number}`)],
        ["id", build.id],
        ["status", paintStatus(paint, build.status)],
        ["commit", build.commit],
        ["branch", oneLine(build.branch)],
        ["message", oneLine(build.message, 100)],
        ["image", build.image_ref ?? "none"],
        ["created", relativeTime(build.created_at)],
        ["took", build.started_at === null ? null : duration(build.started_at, build.finished_at)],
      ]);
      return build.failure === null ? text : `${text}\n\n${renderFailure(paint, build.failure)}`;
    });
  });
}

function addLog(builds: Command, ctx: CliContext): void {
  addCommand(builds, {
    usage: "log [id]",
    summary: "Print a build's log; the newest build's without an id",
    examples: ["berth builds log", "berth builds log bld_06bq… --follow"],
  })
    .option("-f, --follow", "go on until the build has ended")
    .action(async (given: string | undefined, options: { follow?: boolean }) => {
      const client = await ctx.client();
      const id = given ?? (await newestBuild(ctx, client));
      const write = (text: string) => ctx.output.raw(ctx.surroundings.stdout.isTTY ? terminalText(text) : text);
      if (ctx.options.json === true)
        return ctx.output.result(await client.call("builds.logs", { params: { id } }), () => "");
      if (options.follow === true) return void (await followBuild(ctx, client, id, write));
      return printWhatIsThere(ctx, client, { id, write });
    });
}

async function newestBuild(ctx: CliContext, client: Client): Promise<string> {
  const slug = await currentProject(ctx);
  const { builds } = await client.call("builds.list", { params: { slug } });
  if (builds[0] === undefined) throw new CliError("notFound", "not_found", { message: `${slug} has no builds yet.` });
  return builds[0].id;
}

// A long log comes in parts; the one that brings nothing new is the end of what there is.
async function printWhatIsThere(
  ctx: CliContext,
  client: Client,
  { id, write }: { id: string; write: (text: string) => void },
): Promise<void> {
  let offset = 0;
  for (;;) {
    const part = await patiently(ctx, () =>
      client.call("builds.logs", { params: { id }, query: { offset }, signal: ctx.signal }),
    );
    write(part.log);
    if (part.complete || part.next_offset === offset) return;
    offset = part.next_offset;
  }
}
