import type { Command } from "commander";
import { addCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { currentProject } from "../current-project.ts";
import { confirm } from "../prompts.ts";
import { withProgress } from "../render/progress.ts";
import { table } from "../render/table.ts";
import { relativeTime } from "../render/text.ts";

/** The part of `berth backups` that is about restored databases. */
export function addRestored(backups: Command, ctx: CliContext): void {
  addRestore(backups, ctx);
  addList(backups, ctx);
  addPromote(backups, ctx);
  addDrop(backups, ctx);
}

function addRestore(backups: Command, ctx: CliContext): void {
  addCommand(backups, {
    usage: "restore [id]",
    summary: "Restore a backup into a new database; without an id, the newest one. The live database stays as it is",
    examples: ["berth backups restore", "berth backups restore bak_06bq… -p demo"],
  }).action(async (id: string | undefined) => {
    const slug = await currentProject(ctx);
    const client = await ctx.client();
    const body = id === undefined ? {} : { backup_id: id };
    const document = await withProgress(ctx, `Restoring ${id ?? "the newest backup"} of ${slug}`, () =>
      client.call("backups.restore", { params: { slug }, body, signal: ctx.signal }),
    );
    ctx.output.result(
      document,
      (paint) => `${paint.green("Restored:")} ${document.backup_id} into the database ${document.database}`,
    );
    ctx.output.note(
      () => `Look at it, then \`berth backups promote ${document.database}\` lets the application use it.`,
    );
  });
}

function addList(backups: Command, ctx: CliContext): void {
  addCommand(backups, {
    usage: "restored",
    summary: "List the databases beside the live one",
    examples: ["berth backups restored", "berth backups restored -p demo --json"],
  }).action(async () => {
    const slug = await currentProject(ctx);
    const document = await (await ctx.client()).call("backups.restored", { params: { slug } });
    ctx.output.result(document, (paint) => {
      const rows = document.databases.map((each) => [
        each.database,
        each.backup_id ?? "the first one",
        relativeTime(each.created_at),
      ]);
      return table(paint, ["DATABASE", "FROM", "SINCE"], rows, "There is only the live database.");
    });
  });
}

function addPromote(backups: Command, ctx: CliContext): void {
  addCommand(backups, {
    usage: "promote <database>",
    summary: "Let the application use a restored database; the one before is kept",
    examples: [
      "berth backups promote restored_20260102_0a1b2c3d4e",
      "berth backups promote restored_20260102_0a1b2c3d4e --yes",
    ],
  })
    .option("-y, --yes", "don't ask")
    .action(async (database: string, options: { yes?: boolean }) => {
      const slug = await currentProject(ctx);
      await confirm(ctx, `The application of ${slug} will restart with ${database}.`, {
        name: database,
        yes: options.yes,
      });
      const document = await (await ctx.client()).call("backups.promote", { params: { slug }, body: { database } });
      ctx.output.result(document, (paint) => `${paint.green("Promoted:")} ${slug} uses ${document.database}`);
      ctx.output.note(() => `\`berth backups promote ${document.previous}\` goes back.`);
    });
}

function addDrop(backups: Command, ctx: CliContext): void {
  addCommand(backups, {
    usage: "drop <database>",
    summary: "Drop a database beside the live one",
    examples: ["berth backups drop restored_20260102_0a1b2c3d4e --yes"],
  })
    .option("-y, --yes", "don't ask")
    .action(async (database: string, options: { yes?: boolean }) => {
      const slug = await currentProject(ctx);
      await confirm(ctx, `This deletes the database ${database} and everything in it.`, {
        name: database,
        yes: options.yes,
      });
      await (await ctx.client()).call("backups.drop", { params: { slug, database } });
      ctx.output.note(() => `Dropped ${database}.`);
    });
}
