import { setTimeout as sleep } from "node:timers/promises";
import { stat } from "node:fs/promises";
import type { Command } from "commander";
import { ApiError, type Answer, type Client } from "../../contract/client.ts";
import { addCommand, commandGroup, listCommand, rowCommand } from "../command-tree.ts";
import { currentProject, openProject, type CliContext } from "../context.ts";
import { CliError } from "../failures.ts";
import { patiently } from "../follow.ts";
import { paintStatus, facts, table, duration, oneLine, relativeTime, type Paint } from "../render/text.ts";
import { withProgress } from "../render/progress.ts";
import { addArchive } from "./archive.ts";
import { addRestored } from "./restored.ts";
import { counted, bytesText } from "../../kit/bytes-text.ts";
import { saveFile } from "../save-file.ts";
import { formatOf, receiveFile } from "./database-files.ts";

type Backup = Answer<"backups.get">;
type Summary = Answer<"backups.list">["backups"][number];

const pauseMs = 500;

export const addBackups = commandGroup({
  name: "backups",
  summary: "Back up the database and files, verify and restore backups",
  commands: () => [addList, addShow, addCreate, addVerify, addDownload, addRestored, addArchive],
});

const addList = listCommand({
  row: "backups.list",
  usage: "list",
  summary: "List the newest 100 backups",
  isDefault: true,
  examples: ["berth backups", "berth backups list -p demo --json"],
  items: (answer) => answer.backups,
  columns: {
    ID: (backup) => backup.id,
    STATUS: (backup, paint) => paintStatus(paint, backup.status),
    OF: (backup) => backup.content,
    BY: (backup) => backup.origin,
    CREATED: (backup) => relativeTime(backup.created_at),
    TOOK: (backup) => (backup.finished_at === null ? "" : duration(backup.created_at, backup.finished_at)),
    SIZE: (backup) => (backup.size_bytes === null ? "" : bytesText(backup.size_bytes)),
    VERIFICATION: (backup, paint) => verdictOf(paint, backup),
    NOTE: noteOf,
  },
  empty: "There are no backups yet: `berth backups create` makes one.",
});

function verdictOf(paint: Paint, { verification }: Summary): string {
  if (verification === null) return "";
  return `${paintStatus(paint, verification.status)} ${relativeTime(verification.verified_at)}`;
}

function noteOf({ operation, failure }: Summary): string {
  if (operation !== null) return progressOf(operation);
  return failure === null ? "" : oneLine(failure.summary, 60);
}

function progressOf({ kind, phase, bytes_done, tables_done, tables_total }: NonNullable<Summary["operation"]>): string {
  const doing = { backup: "Backing up", restore: "Restoring", verify: "Verifying" }[kind];
  const tables = tables_total === null ? "" : `, ${tables_done} of ${tables_total} tables`;
  return `${doing}: ${phase}, ${bytesText(bytes_done)}${tables}`;
}

const addShow = rowCommand({
  row: "backups.get",
  usage: "show <id>",
  summary: "Show one backup, its tables and its last verification",
  examples: ["berth backups show bak_06bq…", "berth backups show bak_06bq… --json"],
  text: describe,
});

function describe(backup: Backup, paint: Paint): string {
  const text = facts(paint, [
    ["id", backup.id],
    ["status", paintStatus(paint, backup.status)],
    ["of", backup.content === "files" ? "the files in $STORAGE_DIR" : "the database"],
    ["by", backup.origin],
    ["created", relativeTime(backup.created_at)],
    ["took", backup.finished_at === null ? null : duration(backup.created_at, backup.finished_at)],
    ["size", backup.size_bytes === null ? null : bytesText(backup.size_bytes)],
    ["sha-256", backup.sha256],
    ["engine", backup.engine_version === null ? null : `PostgreSQL ${backup.engine_version}`],
    ["stored", backup.storage === null ? null : `in ${backup.storage}`],
    ["verification", backup.verification === null ? null : verdictOf(paint, backup)],
    ["because", backup.verification?.reason ?? null],
    ["now", backup.operation === null ? null : progressOf(backup.operation)],
    ["failure", backup.failure === null ? null : oneLine(backup.failure.summary)],
  ]);
  if (backup.tables === null) return text;
  const rows = backup.tables.map((each) => [oneLine(each.table, 80), String(each.rows)]);
  return `${text}\n\n${table(paint, ["TABLE", "ROWS"], rows, "The database has no tables.")}`;
}

function addCreate(backups: Command, ctx: CliContext): void {
  addCommand(backups, {
    usage: "create",
    summary: "Back up the project's database, or the files in $STORAGE_DIR",
    examples: ["berth backups create", "berth backups create --files", "berth backups create -p demo --no-wait --json"],
  })
    .option("--files", "the files in $STORAGE_DIR instead of the database")
    .option("--no-wait", "don't wait for the end")
    .action(async (options: { wait: boolean; files?: true }) => {
      const { slug, client } = await openProject(ctx);
      const body = { content: options.files === true ? "files" : "database" } as const;
      const begun = await client.call("backups.create", { params: { slug }, body, signal: ctx.signal });
      if (!options.wait)
        return ctx.output.result(
          begun,
          () => `Backing up ${slug} in the background: \`berth backups show ${begun.id}\``,
        );
      const backup = await withProgress(ctx, `Backing up ${slug}`, (say) => watch(ctx, client, { id: begun.id, say }));
      if (backup.status === "failed") throw failed("The backup failed.", backup.failure);
      return ctx.output.result(
        backup,
        (paint) => `${paint.green("Backed up:")} ${backup.id}, ${bytesText(backup.size_bytes ?? 0)}`,
      );
    });
}

/** Waits until no operation on a backup is in progress, and reports its progress. */
async function watch(
  ctx: CliContext,
  client: Client,
  { id, say }: { id: string; say: (label: string) => void },
): Promise<Backup> {
  for (;;) {
    const backup = await patiently(ctx, () => client.call("backups.get", { params: { id }, signal: ctx.signal }));
    if (backup.operation === null && backup.status !== "running") return backup;
    if (backup.operation !== null) say(progressOf(backup.operation));
    await sleep(pauseMs, undefined, { signal: ctx.signal });
  }
}

function failed(message: string, failure: { code: string; summary: string } | null): CliError {
  return new CliError("refused", failure?.code ?? "failed", {
    message: failure === null ? message : `${message} ${failure.summary}`,
  });
}

function addVerify(backups: Command, ctx: CliContext): void {
  addCommand(backups, {
    usage: "verify [id]",
    summary:
      "Restore a backup into a scratch database and compare every table, or read every file of it; without an id, the newest one",
    examples: ["berth backups verify", "berth backups verify bak_06bq… --json"],
  }).action(async (given: string | undefined) => {
    const client = await ctx.client();
    const id = given ?? (await newestCompleted(ctx, client));
    const document = await withProgress(ctx, `Verifying ${id}`, (say) => verify(ctx, client, { id, say }));
    if (document.status !== "verified") {
      if (ctx.options.json === true) ctx.output.result(document, () => "");
      const differing = document.tables.filter((each) => each.expected !== each.actual);
      const list = differing
        .slice(0, 5)
        .map((each) => `${each.table}: ${counted(each.actual ?? 0, "row")} instead of ${each.expected}`);
      const reason = [document.reason ?? "", ...list].filter((part) => part !== "").join(" ");
      throw new CliError("refused", `backup_${document.status}`, {
        message: `Verification of ${id} failed: ${reason}`,
      });
    }
    ctx.output.result(document, (paint) =>
      document.tables.length === 0
        ? `${paint.green("Verified:")} ${id} is whole`
        : `${paint.green("Verified:")} ${counted(document.tables.length, "table")} of ${id} restored with every row`,
    );
  });
}

// Verifying a large database takes longer than one request may; then read the result from the backup.
async function verify(
  ctx: CliContext,
  client: Client,
  { id, say }: { id: string; say: (label: string) => void },
): Promise<Answer<"backups.verify">> {
  const before = await client.call("backups.get", { params: { id }, signal: ctx.signal });
  try {
    return await client.call("backups.verify", { params: { id }, signal: ctx.signal });
  } catch (fault) {
    if (!(fault instanceof ApiError) || fault.status !== 503) throw fault;
    const { verification } = await watch(ctx, client, { id, say });
    if (verification === null || verification.verified_at === before.verification?.verified_at) throw fault;
    return verification;
  }
}

async function newestCompleted(ctx: CliContext, client: Client): Promise<string> {
  const slug = await currentProject(ctx);
  const { backups } = await client.call("backups.list", { params: { slug } });
  const newest = backups.find((backup) => backup.status === "completed");
  if (newest === undefined)
    throw new CliError("notFound", "not_found", {
      message: `${slug} has no completed backup yet.`,
      hint: "`berth backups create` makes one.",
    });
  return newest.id;
}

/** Adds `berth backups download`: writes a backup to a file for pg_restore, psql or tar. */
function addDownload(backups: Command, ctx: CliContext): void {
  addCommand(backups, {
    usage: "download <id>",
    summary: "Save a backup as a file for pg_restore or as SQL text, and files as a tar archive (owners only)",
    examples: ["berth backups download bak_06bq…", "berth backups download bak_06bq… --format plain -o demo.sql"],
  })
    .option("--format <custom|plain>", "for pg_restore, or SQL text", "custom")
    .option("--age", "encrypted: only the platform's recovery key opens it, with the program age")
    .option("-o, --output <file>", "write into this file, which must not exist yet")
    .action(async (backup_id: string, options: { format: string; age?: boolean; output?: string }) => {
      const format = formatOf(options);
      const encrypted = options.age === true;
      const { slug, client } = await openProject(ctx);
      const { content } = await client.call("backups.get", { params: { id: backup_id } });
      const { id } = await client.call("database.dump", { params: { slug }, body: { backup_id, format, encrypted } });
      const ending = content === "files" ? "tar" : format === "plain" ? "sql" : "dump";
      const name = options.output ?? `${slug}-${backup_id}.${ending}${encrypted ? ".age" : ""}`;
      const file = await saveFile(ctx, name, { replaces: false }, (target) => receiveFile(ctx, { slug, id, target }));
      const { size: bytes } = await stat(file);
      ctx.output.result({ file, bytes }, (paint) => `${paint.green("Saved")} ${name}, ${bytesText(bytes)}`);
    });
}
