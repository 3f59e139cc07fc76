import { bytesText, counted } from "../../kit/bytes-text.ts";
import type { Answer } from "../../contract/client.ts";
import { commandGroup, severalCommands, actCommand, listCommand, rowCommand } from "../command-tree.ts";
import { paintStatus, facts, table, duration, oneLine, relativeTime, type Paint } from "../render/text.ts";

/** Adds `berth backups archive`, which moments of the database can be restored, and the commands of drills. */
export const addArchive = severalCommands(() => [addMoments, addDrills, addDrill, addEvidence]);

const addMoments = commandGroup({
  name: "archive",
  summary: "Show and set which moments of the database can be restored",
  commands: () => [
    rowCommand({
      row: "backups.archive",
      usage: "show",
      summary: "Show which moments of the database can be restored",
      isDefault: true,
      examples: ["berth backups archive", "berth backups archive -p demo --json"],
      text: describe,
      note: ({ status }) =>
        status === "off" ? "`berth backups archive on` keeps every moment from now on." : undefined,
    }),
    rowCommand({
      row: "backups.set_archive",
      usage: "on",
      summary: "Keep every moment from now on; a database from before Berth could do that restarts once",
      examples: ["berth backups archive on"],
      input: () => ({ body: { enabled: true } }),
      text: describe,
    }),
    actCommand({
      row: "backups.set_archive",
      usage: "off",
      summary: "Keep no more moments; those that are kept stay until their retention ends",
      examples: ["berth backups archive off --yes"],
      input: () => ({ body: { enabled: false } }),
      warning: ({ words: { slug = "" } }) => `From now on only the backups of ${slug} can be restored.`,
      text: describe,
    }),
  ],
});

const addDrills = listCommand({
  row: "backups.drills",
  usage: "drills",
  summary: "List the newest 100 drills: trial restores from the archive, each night and on request",
  examples: ["berth backups drills", "berth backups drills -p demo --json"],
  items: ({ drills }) => drills,
  columns: {
    ID: ({ id }) => id,
    STATUS: ({ status }, paint) => paintStatus(paint, status),
    BY: ({ origin }) => origin,
    CREATED: ({ created_at }) => relativeTime(created_at),
    TOOK: ({ created_at, finished_at }) => (finished_at === null ? "" : duration(created_at, finished_at)),
    NOTE: ({ problem }) => (problem === null ? "" : oneLine(problem, 60)),
  },
  empty: "There were no drills yet: `berth backups drill` runs one.",
});

const addDrill = rowCommand({
  row: "backups.run_drill",
  usage: "drill",
  summary: "Restore the database from its archive, read every row, compare each table with the live one, and drop it",
  examples: ["berth backups drill", "berth backups drill -p demo --json > evidence.json"],
  progress: ({ words: { slug } }) => `Restoring ${slug} from its archive`,
  text: describeDrill,
});

const addEvidence = rowCommand({
  row: "backups.drill",
  usage: "evidence <drill>",
  summary: "Show what a drill restored, from which files, and each table's rows",
  examples: ["berth backups evidence bop_06bq… --json > evidence.json"],
  text: describeDrill,
});

function describeDrill({ id, status, problem, sha256, evidence }: Answer<"backups.drill">, paint: Paint): string {
  const text = facts(paint, [
    ["drill", id],
    ["status", paintStatus(paint, status)],
    ["because", problem],
    ["asked for", evidence?.asked_for ?? null],
    ["reached", evidence?.reached ?? null],
    ["copy", evidence === null ? null : `${evidence.copy.key} in ${evidence.storage}`],
    ["log", evidence === null ? null : `${counted(evidence.log.segments, "segment")} from ${evidence.log.first}`],
    ["evidence", sha256 === null ? null : `SHA-256 ${sha256}`],
  ]);
  if (evidence === null) return text;
  const rows = evidence.tables.map(({ table: name, rows: restored, live_rows: live }) => [
    oneLine(name, 80),
    String(restored),
    live === null ? "was being written" : String(live),
  ]);
  return `${text}\n\n${table(paint, ["TABLE", "RESTORED", "LIVE"], rows, "The database has no tables.")}`;
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
