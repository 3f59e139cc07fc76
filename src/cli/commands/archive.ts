import type { Command } from "commander";
import { bytesText } from "../../kit/bytes-text.ts";
import { counted } from "../../kit/counted.ts";
import type { Answer } from "../../contract/client.ts";
import { addGroup } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { paintStatus, type Paint } from "../render/paint.ts";
import { facts } from "../render/table.ts";
import { actCommand, rowCommand } from "../row-commands.ts";

/** Adds `berth backups archive`: which moments of the database can be restored. */
export function addArchive(backups: Command, ctx: CliContext): void {
  const archive = addGroup(backups, "archive", "Show and set which moments of the database can be restored");
  rowCommand(archive, ctx, {
    row: "backups.archive",
    usage: "show",
    summary: "Show which moments of the database can be restored",
    isDefault: true,
    examples: ["berth backups archive", "berth backups archive -p demo --json"],
    text: describe,
    note: ({ status }) => (status === "off" ? "`berth backups archive on` keeps every moment from now on." : undefined),
  });
  rowCommand(archive, ctx, {
    row: "backups.set_archive",
    usage: "on",
    summary: "Keep every moment from now on; a database from before Berth could do that restarts once",
    examples: ["berth backups archive on"],
    input: () => ({ body: { enabled: true } }),
    text: describe,
  });
  actCommand(archive, ctx, {
    row: "backups.set_archive",
    usage: "off",
    summary: "Keep no more moments; those that are kept stay until their retention ends",
    examples: ["berth backups archive off --yes"],
    input: () => ({ body: { enabled: false } }),
    question: ({ words: { slug = "" } }) => ({
      what: `From now on only the backups of ${slug} can be restored.`,
      name: slug,
    }),
    text: describe,
  });
}

function describe(archive: Answer<"backups.archive">, paint: Paint): string {
  const { status, reason, windows, gaps, stored_bytes, retention_days } = archive;
  return facts(paint, [
    ["status", paintStatus(paint, status)],
    ["because", reason],
    ...windows.map(({ from, to }): [string, string] => ["any moment", `from ${from} to ${to}`]),
    ...gaps.map(({ from, to, reason: why }): [string, string] => ["but none", `from ${from} to ${to}: ${why}`]),
    ["kept", counted(retention_days, "day")],
    ["stored", bytesText(stored_bytes)],
  ]);
}
