import type { Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { bytesText } from "../../kit/bytes-text.ts";
import { addGroup } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { paintStatus, type Paint } from "../render/paint.ts";
import { facts } from "../render/table.ts";
import { oneLine, relativeTime } from "../render/text.ts";
import { addFiles } from "./database-files.ts";
import { addSessions } from "./database-session.ts";
import { addQuery } from "./database-query.ts";
import { rowCommand } from "../row-commands.ts";

/** Adds `berth db`: the project's PostgreSQL database. */
export function addDatabase(program: Command, ctx: CliContext): void {
  const database = addGroup(program, "db", "Show or create the project's database", "database");
  rowCommand(database, ctx, {
    row: "database.get",
    usage: "show",
    summary: "Show the project's database",
    isDefault: true,
    examples: ["berth db", "berth db show -p demo --json"],
    text: describe,
  });
  rowCommand(database, ctx, {
    row: "database.create",
    usage: "create",
    summary: "Give the project a PostgreSQL database",
    examples: ["berth db create", "berth db create -p demo"],
    input: ({ startEmpty }) => ({ body: { ...(startEmpty === undefined ? {} : { start_empty: startEmpty }) } }),
    progress: ({ words }) => `Creating a database for ${words.slug}`,
    text: describe,
    note: () =>
      "DATABASE_URL in the application's environment names it. A running application restarts with it in a few seconds.",
  }).option("--start-empty", "replace a database whose data is missing from the platform's data folder");
  addQuery(database, ctx);
  addSessions(database, ctx);
  addFiles(database, ctx);
}

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
