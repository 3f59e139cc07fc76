import { severalCommands, actCommand, listCommand, rowCommand } from "../command-tree.ts";
import { deploymentNumber, ifGiven, instant } from "../input.ts";
import { relativeTime } from "../render/text.ts";

export const addRestored = severalCommands(() => [addRestore, addList, addPromote, addDrop]);

/** Adds `restore`, to `berth backups` and to `berth db`. */
export const addRestore = rowCommand({
  row: "backups.restore",
  usage: "restore [id]",
  summary:
    "Restore a backup into a new database, or a new folder for files; without an id, the database's newest one. With --at, the database as it was at any moment. The live data stays as it is",
  examples: [
    "berth backups restore",
    "berth backups restore bak_06bq… -p demo",
    "berth backups restore --at 10m",
    "berth backups restore --at 2026-01-31T09:00:00Z",
    "berth backups restore --before-deployment 12",
  ],
  input: ({ at, beforeDeployment }, { id }) => ({
    body: {
      backup_id: id,
      at: instant(at, "--at"),
      before_deployment: ifGiven(beforeDeployment, deploymentNumber),
    },
  }),
  progress: ({ words: { id = "the newest backup", slug }, options }) =>
    `Restoring ${(options["at"] ?? options["beforeDeployment"]) === undefined ? id : "that moment"} of ${slug}`,
  text: ({ backup_id, database, folder, shows }, paint) =>
    `${paint.green("Restored:")} ${shows === null ? backup_id : `the state of ${shows}`} into ${database === null ? `$STORAGE_DIR/${folder}` : `the database ${database}`}`,
  note: ({ database, folder }) =>
    database === null
      ? `Take what you need: \`berth run 'cp -a "$STORAGE_DIR/${folder}/." "$STORAGE_DIR"'\`, then delete it: \`berth disk remove ${folder}\``
      : `Check it, then make it the live database: \`berth backups promote ${database}\``,
  options: (command) =>
    command
      .option("--at <time>", "the database as it was: 90s, 15m, 2h, 7d ago, or at 2026-01-31T09:00:00Z")
      .option("--before-deployment <number>", "the database as it was before a deployment"),
});

const addList = listCommand({
  row: "backups.restored",
  usage: "restored",
  summary: "List the databases beside the live one",
  examples: ["berth backups restored", "berth backups restored -p demo --json"],
  items: (answer) => answer.databases,
  columns: {
    DATABASE: ({ database }) => database,
    FROM: ({ backup_id, shows }) => shows ?? backup_id ?? "the first one",
    SINCE: ({ created_at }) => relativeTime(created_at),
  },
  empty: "There is only the live database.",
});

const addPromote = actCommand({
  row: "backups.promote",
  usage: "promote <database>",
  summary: "Let the application use a restored database; the one before is kept",
  examples: [
    "berth backups promote restored_20260102_0a1b2c3d4e",
    "berth backups promote restored_20260102_0a1b2c3d4e --yes",
    "berth backups promote restored_20260102_0a1b2c3d4e --deployment 12",
  ],
  input: ({ deployment }, { database = "" }) => ({
    body: { database, deployment: ifGiven(deployment, deploymentNumber) },
  }),
  warning: ({ words: { database = "", slug = "" } }) => `The application of ${slug} will restart with ${database}.`,
  typed: ({ words: { slug = "" } }) => slug,
  text: ({ database }, paint, { words: { slug } }) => `${paint.green("Promoted:")} ${slug} uses ${database}`,
  note: ({ previous }) => `\`berth backups promote ${previous}\` goes back.`,
  options: (command) =>
    command.option("--deployment <number>", "also go back to this deployment, whose code fits the data"),
});

const addDrop = actCommand({
  row: "backups.drop",
  usage: "drop <database>",
  summary: "Drop a database beside the live one",
  examples: ["berth backups drop restored_20260102_0a1b2c3d4e --yes"],
  warning: ({ words: { database = "" } }) => `This deletes the database ${database} and everything in it.`,
  text: (_, _paint, { words }) => `Dropped ${words.database}.`,
});
