import type { Command } from "commander";
import { entryKinds } from "../../contract/activity.ts";
import { addCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { currentProject } from "../current-project.ts";
import { wholeNumber } from "../input.ts";
import { entryTable } from "../render/entries.ts";

/** `berth timeline`: what happened to a project. */
export function addTimeline(program: Command, ctx: CliContext): void {
  const examples = ["berth timeline", "berth timeline --kind deployment,replica", "berth timeline -n 500 --json"];
  addCommand(program, { usage: "timeline", summary: "List what happened to the project, newest first", examples })
    .option("-n, --limit <number>", "how many, 1 to 500", "30")
    .option("--kind <kinds>", `some kinds alone, with commas: ${entryKinds.join(", ")}`)
    .option("--cursor <cursor>", "go on behind an earlier page")
    .action(async (options: { limit: string; kind?: string; cursor?: string }) => {
      const slug = await currentProject(ctx);
      const limit = wholeNumber(options.limit, "--limit", { least: 1, most: 500 });
      const query = { limit, kind: options.kind, cursor: options.cursor };
      const page = await (await ctx.client()).call("timeline.list", { params: { slug }, query });
      ctx.output.result(page, (paint) => entryTable(paint, page.timeline, { projects: false }));
      if (page.next_cursor !== null) ctx.output.note(() => `There is more: --cursor ${page.next_cursor}`);
    });
}
