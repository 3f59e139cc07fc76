import type { Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { addCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { currentProject } from "../current-project.ts";
import { readInput } from "../input.ts";
import { table } from "../render/table.ts";
import type { Paint } from "../render/paint.ts";
import { oneLine } from "../render/text.ts";
import { cellText } from "./data.ts";

/** Adds `berth db query`: runs one read-only statement. */
export function addQuery(database: Command, ctx: CliContext): void {
  addCommand(database, {
    usage: "query <sql>",
    summary: "Run one SQL statement that reads: 5 s and 500 rows at most",
    examples: [
      "berth db query 'select count(*) from users'",
      "berth db query --json 'explain select * from orders where total > 100'",
      "berth db query - < report.sql",
    ],
  })
    .option("--database <name>", "another database of the project, such as a restored one")
    .action(async (given: string, options: { database?: string }) => {
      const sql = given === "-" ? await readInput(ctx, "-") : given;
      const slug = await currentProject(ctx);
      const client = await ctx.client();
      const body = { sql, ...options };
      const found = await client.call("data.query", { params: { slug }, body, signal: ctx.signal });
      ctx.output.result(found, (paint) => resultTable(paint, found));
      if (found.more)
        ctx.output.note(() => `There are more rows than these ${found.rows.length}: add LIMIT and OFFSET.`);
    });
}

function resultTable(paint: Paint, { columns, rows }: Answer<"data.query">): string {
  const head = columns.map(({ name }) => oneLine(name, 40));
  const lines = rows.map((row) => row.map((cell) => cellText(paint, cell)));
  return table(paint, head, lines, columns.length === 0 ? "Done; there is nothing to show." : "No rows.");
}
