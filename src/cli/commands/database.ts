import type { Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { addCommand, addGroup } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { currentProject } from "../current-project.ts";
import { paintStatus } from "../render/paint.ts";
import { withProgress } from "../render/progress.ts";
import { facts } from "../render/table.ts";
import { oneLine, relativeTime, size } from "../render/text.ts";
import { addFiles } from "./database-files.ts";
import { addSessions } from "./database-session.ts";
import { addQuery } from "./database-query.ts";

/** `berth db`: the project's PostgreSQL database. */
export function addDatabase(program: Command, ctx: CliContext): void {
  const database = addGroup(program, "db", "Show or create the project's database", "database");
  addCommand(database, {
    usage: "show",
    summary: "Show the project's database",
    isDefault: true,
    examples: ["berth db", "berth db show -p demo --json"],
  }).action(async () => {
    const slug = await currentProject(ctx);
    show(ctx, await (await ctx.client()).call("database.get", { params: { slug } }));
  });
  addCommand(database, {
    usage: "create",
    summary: "Give the project a PostgreSQL database",
    examples: ["berth db create", "berth db create -p demo"],
  }).action(async () => {
    const slug = await currentProject(ctx);
    const client = await ctx.client();
    show(
      ctx,
      await withProgress(ctx, `Making a database for ${slug}`, () =>
        client.call("database.create", { params: { slug }, signal: ctx.signal }),
      ),
    );
    ctx.output.note(() => "The application finds it in DATABASE_URL.");
  });
  addQuery(database, ctx);
  addSessions(database, ctx);
  addFiles(database, ctx);
}

function show(ctx: CliContext, database: Answer<"database.get">): void {
  ctx.output.result(database, (paint) =>
    facts(paint, [
      ["status", paintStatus(paint, database.status)],
      ["engine", `PostgreSQL ${database.engine_version ?? ""}`.trim()],
      ["size", database.size_bytes === null ? null : size(database.size_bytes)],
      ["connections", database.connections === null ? null : String(database.connections)],
      ["created", relativeTime(database.created_at)],
      [
        "failure",
        database.failure === null ? null : `${oneLine(database.failure.summary)} ${oneLine(database.failure.hint)}`,
      ],
    ]),
  );
}
