import type { Command } from "commander";
import { browse } from "../browse.ts";
import { addCommand } from "../command-tree.ts";
import { currentProject, type CliContext } from "../context.ts";

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
