import type { Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { addCommand } from "../command-tree.ts";
import { openProject, type CliContext } from "../context.ts";
import { remoteName, remoteUrl, setRemoteUrl, slugOfRemote } from "../git.ts";

export function addRename(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "rename <new-slug>",
    summary: "Give the project another slug and hostname; the earlier ones lead to it for 30 more days",
    examples: ["berth rename shop", "berth rename shop -p demo --json"],
  }).action(async (wanted: string) => {
    const { slug, client } = await openProject(ctx);
    const project = await client.call("projects.rename", { params: { slug }, body: { slug: wanted } });
    const remote = await followName(ctx, slug, wanted);
    ctx.output.result(project, () =>
      [
        `${slug} is called ${project.slug} now: ${project.url}`,
        ...earlierText(project, slug),
        ...(remote === undefined ? [] : [`The git remote "${remoteName}" points to ${remote}`]),
        "The application sees its new BERTH_URL from its next start on: `berth restart`",
      ].join("\n"),
    );
  });
}

function earlierText({ earlier_names: names }: Answer<"projects.get">, slug: string): string[] {
  const earlier = names.find((name) => name.slug === slug);
  return earlier === undefined ? [] : [`${earlier.url} answers until ${earlier.until.slice(0, 10)}.`];
}

/** Changes this folder's git remote if it led to the renamed project, and returns its new URL. */
async function followName(ctx: CliContext, slug: string, wanted: string): Promise<string | undefined> {
  const url = await remoteUrl(ctx.environment);
  if (url === undefined || slugOfRemote(url) !== slug) return undefined;
  const renamed = url.replace(new RegExp(`/${slug}\\.git(/?)$`), `/${wanted}.git$1`);
  return (await setRemoteUrl(ctx.environment, renamed)) ? renamed : undefined;
}
