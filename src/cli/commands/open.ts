import type { Command } from "commander";
import { run } from "../../kit/exec.ts";
import { addCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { currentProject } from "../current-project.ts";

const openers: Partial<Record<NodeJS.Platform, string>> = { darwin: "open", linux: "xdg-open" };

/** Adds `berth open`: prints a project's URL, and opens it in a browser if the output is a terminal. */
export function addOpen(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "open [slug]",
    summary:
      "Print the project's URL and open it in a browser; with --dashboard, a link that signs in to the dashboard",
    examples: ["berth open", "berth open demo --no-browser", "berth open --dashboard"],
  })
    .option("--dashboard", "a link that signs in to the dashboard, once and within 15 minutes")
    .option("--no-browser", "only print the URL")
    .action(async (given: string | undefined, options: { browser: boolean; dashboard?: boolean }) => {
      if (options.dashboard === true) return openDashboard(ctx, options.browser);
      const slug = await currentProject(ctx, given);
      const project = await (await ctx.client()).call("projects.get", { params: { slug } });
      ctx.output.result(project, () => project.url);
      if (project.active_deployment === null) ctx.output.note(() => "Nothing is deployed there yet.");
      else if (options.browser && ctx.output.watched() && ctx.environment.stdout.isTTY) await browse(ctx, project.url);
    });
}

async function openDashboard(ctx: CliContext, wantsBrowser: boolean): Promise<void> {
  const link = await (await ctx.client()).signInLink();
  ctx.output.result(link, () => link.url);
  if (wantsBrowser && ctx.output.watched() && ctx.environment.stdout.isTTY) await browse(ctx, link.url);
}

// Failing to open a browser is not an error: the URL has been printed.
async function browse({ environment }: CliContext, url: string): Promise<void> {
  const opener = openers[process.platform];
  if (opener === undefined || !/^https?:\/\//.test(url)) return;
  await run({ file: opener, args: [url] }, { env: environment.childEnvironment, timeoutMs: 5000 }).catch(() => {});
}
