import type { Command } from "commander";
import type { CliContext } from "../context.ts";
import { relativeTime } from "../render/text.ts";
import { actCommand, listCommand, rowCommand } from "../row-commands.ts";

/** Adds the commands of `berth backups` for restored databases. */
export function addRestored(backups: Command, ctx: CliContext): void {
  addRestore(backups, ctx);
  addList(backups, ctx);
  addPromote(backups, ctx);
  addDrop(backups, ctx);
}

function addRestore(backups: Command, ctx: CliContext): void {
  rowCommand(backups, ctx, {
    row: "backups.restore",
    usage: "restore [id]",
    summary:
      "Restore a backup into a new database, or a new folder for files; without an id, the database's newest one. The live data stays as it is",
    examples: ["berth backups restore", "berth backups restore bak_06bq… -p demo"],
    input: (_, { id }) => ({ body: id === undefined ? {} : { backup_id: id } }),
    progress: ({ words: { id, slug } }) => `Restoring ${id ?? "the newest backup"} of ${slug}`,
    text: ({ backup_id, database, folder }, paint) =>
      `${paint.green("Restored:")} ${backup_id} into ${database === null ? `$STORAGE_DIR/${folder}` : `the database ${database}`}`,
    note: ({ database, folder }) =>
      database === null
        ? `Take what you need: \`berth run 'cp -a "$STORAGE_DIR/${folder}/." "$STORAGE_DIR"'\`, then delete it: \`berth disk remove ${folder}\``
        : `Check it, then make it the live database: \`berth backups promote ${database}\``,
  });
}

function addList(backups: Command, ctx: CliContext): void {
  listCommand(backups, ctx, {
    row: "backups.restored",
    usage: "restored",
    summary: "List the databases beside the live one",
    examples: ["berth backups restored", "berth backups restored -p demo --json"],
    items: (answer) => answer.databases,
    columns: {
      DATABASE: ({ database }) => database,
      FROM: ({ backup_id }) => backup_id ?? "the first one",
      SINCE: ({ created_at }) => relativeTime(created_at),
    },
    empty: "There is only the live database.",
  });
}

function addPromote(backups: Command, ctx: CliContext): void {
  actCommand(backups, ctx, {
    row: "backups.promote",
    usage: "promote <database>",
    summary: "Let the application use a restored database; the one before is kept",
    examples: [
      "berth backups promote restored_20260102_0a1b2c3d4e",
      "berth backups promote restored_20260102_0a1b2c3d4e --yes",
    ],
    input: (_, { database = "" }) => ({ body: { database } }),
    question: ({ words: { database = "", slug = "" } }) => ({
      what: `The application of ${slug} will restart with ${database}.`,
      name: slug,
    }),
    text: ({ database }, paint, { words: { slug } }) => `${paint.green("Promoted:")} ${slug} uses ${database}`,
    note: ({ previous }) => `\`berth backups promote ${previous}\` goes back.`,
  });
}

function addDrop(backups: Command, ctx: CliContext): void {
  actCommand(backups, ctx, {
    row: "backups.drop",
    usage: "drop <database>",
    summary: "Drop a database beside the live one",
    examples: ["berth backups drop restored_20260102_0a1b2c3d4e --yes"],
    question: ({ words: { database = "" } }) => ({
      what: `This deletes the database ${database} and everything in it.`,
      name: database,
    }),
    text: (_, _paint, { words }) => `Dropped ${words.database}.`,
  });
}
