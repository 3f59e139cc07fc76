import type { Command } from "commander";
import { entryKinds } from "../../contract/activity.ts";
import { addCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { wholeNumber } from "../input.ts";
import { entryTable } from "../render/entries.ts";

/** `berth activity`: what happened in the organization. */
export function addActivity(program: Command, ctx: CliContext): void {
  const examples = ["berth activity", "berth activity --kind access", "berth activity -n 500 --json"];
  addCommand(program, { usage: "activity", summary: "List what happened in the organization, newest first", examples })
    .option("-n, --limit <number>", "how many, 1 to 500", "30")
    .option("--kind <kinds>", `some kinds alone, with commas: ${entryKinds.join(", ")}`)
    .option("--cursor <cursor>", "go on behind an earlier page")
    .action(async (options: { limit: string; kind?: string; cursor?: string }) => {
      const limit = wholeNumber(options.limit, "--limit", { least: 1, most: 500 });
      const query = { limit, kind: options.kind, cursor: options.cursor };
      const page = await (await ctx.client()).call("activity.list", { query });
      ctx.output.result(page, (paint) => entryTable(paint, page.activity, { projects: true }));
      if (page.next_cursor !== null) ctx.output.note(() => `There is more: --cursor ${page.next_cursor}`);
    });
}
