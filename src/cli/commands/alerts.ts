import type { Command } from "commander";
import { addCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { paintStatus } from "../render/paint.ts";
import { table } from "../render/table.ts";
import { oneLine, relativeTime } from "../render/text.ts";

/** `berth alerts`: what the operator was told of. */
export function addAlerts(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "alerts",
    summary: "List the open alerts (for the platform's operator)",
    examples: ["berth alerts", "berth alerts --all", "berth alerts --all --cursor alt_01jd… --json"],
  })
    .option("--all", "the resolved ones too")
    .option("--cursor <id>", "go on after this alert")
    .action(async (options: { all?: boolean; cursor?: string }) => {
      const query = { all: options.all, cursor: options.cursor };
      const document = await (await ctx.client()).call("alerts.list", { query });
      ctx.output.result(document, (paint) => {
        const rows = document.alerts.map((alert) => [
          paintStatus(paint, alert.resolved_at === null ? alert.severity : "resolved"),
          [alert.check, alert.subject].filter((part) => part !== null).join(" "),
          alert.machine ?? "",
          relativeTime(alert.opened_at),
          alert.resolved_at === null ? "" : relativeTime(alert.resolved_at),
          oneLine(alert.summary, 120),
        ]);
        return table(
          paint,
          ["SEVERITY", "CHECK", "MACHINE", "OPENED", "RESOLVED", "SUMMARY"],
          rows,
          "There are no alerts.",
        );
      });
      if (document.next_cursor !== null) ctx.output.note(() => `There are more: --cursor ${document.next_cursor}`);
    });
}
