import type { Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { bytesText } from "../../kit/bytes-text.ts";
import { addCommand, commandGroup, rowCommand } from "../command-tree.ts";
import { openProject, type CliContext } from "../context.ts";
import { readInput } from "../input.ts";
import { paintStatus, facts, table, oneLine, relativeTime, type Paint } from "../render/text.ts";
import { addBranches, branchOption } from "./branches.ts";
import { cellText } from "./data.ts";
import { addFiles } from "./database-files.ts";
import { addSessions } from "./database-session.ts";
import { addViews } from "./database-views.ts";
import { addRestore } from "./restored.ts";

export const addDatabase = commandGroup({
  name: "db",
  summary: "Show or create the project's database",
  alias: "database",
  commands: () => [
    rowCommand({
      row: "database.get",
      usage: "show",
      summary: "Show the project's database",
      isDefault: true,
      examples: ["berth db", "berth db show -p demo --json"],
      text: describe,
    }),
    rowCommand({
      row: "database.create",
      usage: "create",
      summary: "Give the project a PostgreSQL database",
      examples: ["berth db create", "berth db create -p demo"],
      input: ({ startEmpty }) => ({ body: { start_empty: startEmpty } }),
      progress: ({ words }) => `Creating a database for ${words.slug}`,
      text: describe,
      note: () =>
        "DATABASE_URL in the application's environment names it. A running application restarts with it in a few seconds.",
      options: (command) =>
        command.option("--start-empty", "replace a database whose data is missing from the platform's data folder"),
    }),
    addRestore,
    addBranches,
    addQuery,
    addViews,
    addSessions,
    addFiles,
  ],
});

function describe(database: Answer<"database.get">, paint: Paint): string {
  return facts(paint, [
    ["status", paintStatus(paint, database.status)],
    ["engine", `PostgreSQL ${database.engine_version ?? ""}`.trim()],
    ["size", database.size_bytes === null ? null : bytesText(database.size_bytes)],
    ["connections", database.connections === null ? null : String(database.connections)],
    ["created", relativeTime(database.created_at)],
    [
      "failure",
      database.failure === null ? null : `${oneLine(database.failure.summary)} ${oneLine(database.failure.hint)}`,
    ],
  ]);
}

/** Adds `berth db query`: runs one read-only statement. */
function addQuery(database: Command, ctx: CliContext): void {
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
    .option(...branchOption)
    .action(async (given: string, options: { database?: string; branch?: string }) => {
      const sql = given === "-" ? await readInput(ctx, "-") : given;
      const { slug, client } = await openProject(ctx);
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
