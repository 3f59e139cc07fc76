import { createHash } from "node:crypto";
import { basename } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { bytesText } from "../../kit/bytes-text.ts";
import { quoted } from "../../kit/quoted.ts";
import { addCommand, commandGroup, actCommand, listCommand, rowCommand } from "../command-tree.ts";
import { openProject, type CliContext } from "../context.ts";
import { usageError } from "../failures.ts";
import { fileToSend, wholeNumber } from "../input.ts";
import { withProgress } from "../render/progress.ts";
import { paintStatus, facts, oneLine, relativeTime, type Paint } from "../render/text.ts";
import { saveFile } from "../save-file.ts";

type Disk = Answer<"disk.get">;

export const addDisk = commandGroup({
  name: "disk",
  summary: "Show a project's use of the disk, and make room",
  commands: () => [
    rowCommand({
      row: "disk.get",
      usage: "show",
      summary: "Show use and limits",
      isDefault: true,
      examples: ["berth disk", "berth disk show -p demo --json"],
      text: describe,
    }),
    addFiles,
    addGet,
    addPut,
    addRestore,
    addRemove,
    addLimits,
  ],
});

const addFiles = listCommand({
  row: "disk.files",
  usage: "files [folder]",
  alias: "ls",
  summary: "List $STORAGE_DIR, or a folder below it",
  examples: ["berth disk files", "berth disk files uploads -p demo", "berth disk files uploads --backup bak_06bq…"],
  input: ({ backup }, { folder }) => ({ query: { path: folder, backup } }),
  items: ({ files }) => files,
  columns: {
    NAME: ({ name, kind }) => oneLine(kind === "folder" ? `${name}/` : name),
    KIND: ({ kind }) => kind,
    SIZE: ({ kind, size_bytes }) => (kind === "file" ? bytesText(size_bytes) : ""),
    MODIFIED: ({ modified_at }) => relativeTime(modified_at),
  },
  empty: "No files here.",
  options: (command) => command.option("--backup <id>", ofBackup),
});

const ofBackup = "of this backup of the files, instead of the live ones";

function addGet(disk: Command, ctx: CliContext): void {
  addCommand(disk, {
    usage: "get <path>",
    summary: "Write a file below $STORAGE_DIR to stdout, or with --output to a file",
    examples: [
      "berth disk get notes.txt",
      "berth disk get uploads/photo.jpg --output photo.jpg",
      "berth disk get notes.txt --backup bak_06bq…",
    ],
  })
    .option("-o, --output <file>", "the file to write; it must not exist")
    .option("--backup <id>", ofBackup)
    .action(async (path: string, { output, backup }: { output?: string; backup?: string }) => {
      const { stdout } = ctx.environment;
      const { slug, client } = await openProject(ctx);
      const parts = async function* () {
        for (let offset: number | null = 0; offset !== null;) {
          const part: Answer<"disk.read"> = await client.call("disk.read", {
            params: { slug },
            query: { path, offset, backup },
          });
          yield Buffer.from(part.base64, "base64");
          offset = part.next_offset;
        }
      };
      if (output === undefined) await pipeline(parts, stdout, { end: false });
      else await saveFile(ctx, output, { replaces: false }, (target) => pipeline(parts, target));
    });
}

function addPut(disk: Command, ctx: CliContext): void {
  addCommand(disk, {
    usage: "put <file> [path]",
    alias: "upload",
    summary:
      "Write a file into $STORAGE_DIR, by default under its own name. Where something is, only with --replace, and that is kept",
    examples: ["berth disk put photo.jpg uploads/photo.jpg", "berth disk put notes.txt --replace -p demo"],
  })
    .option("--replace", "put it in the place of what is there, which is kept below .restored")
    .action(async (file: string, given: string | undefined, { replace = false }: { replace?: boolean }) => {
      const { slug, client } = await openProject(ctx);
      const content = await fileToSend(ctx, file);
      const hash = createHash("sha256");
      for await (const chunk of content.stream() as AsyncIterable<Uint8Array>) hash.update(chunk);
      const query = { path: given ?? basename(file), size_bytes: content.size, sha256: hash.digest("hex"), replace };
      const put = () => client.call("disk.write", { params: { slug }, query, upload: content, signal: ctx.signal });
      const written = await withProgress(ctx, `Sending ${bytesText(content.size)}`, put);
      const { path, kept, kept_folder } = written;
      ctx.output.result(
        written,
        (paint) =>
          `${paint.green("Written:")} ${oneLine(path)}${kept === null ? "" : `; what was there is in ${oneLine(kept)}`}`,
      );
      if (kept_folder !== null) ctx.output.note(() => keptNote(path, kept_folder));
    });
}

const keptNote = (path: string, folder: string) =>
  `\`berth disk restore ${quoted(path)} --from ${folder} --replace\` goes back; \`berth disk remove .restored/${folder}\` deletes it.`;

const addRestore = rowCommand({
  row: "backups.restore_path",
  usage: "restore <path>",
  summary:
    "Put a file or folder of a backup of the files back into $STORAGE_DIR. Where something is, only with --replace, and that is kept",
  examples: [
    "berth disk restore uploads/photo.jpg --backup bak_06bq…",
    "berth disk restore uploads --backup bak_06bq… --replace",
    "berth disk restore uploads --from restored_20260102_0a1b2c3d4e_replaced --replace",
  ],
  input: ({ backup, from, replace }, { path = "" }) => ({
    body: { path, backup_id: backup, folder: from, replace: replace === true },
  }),
  progress: ({ words: { path = "", slug } }) => `Restoring ${oneLine(path)} of ${slug}`,
  text: ({ path, kept }, paint) =>
    `${paint.green("Restored:")} ${oneLine(path)}${kept === null ? "" : `; what was there is in ${oneLine(kept)}`}`,
  note: ({ path, kept_folder }) => (kept_folder === null ? undefined : keptNote(path, kept_folder)),
  options: (command) =>
    command
      .option("--backup <id>", "the backup of the files")
      .option("--from <folder>", "instead of a backup, a folder below .restored")
      .option("--replace", "put it in the place of what is there, which is kept below .restored"),
});

const addRemove = actCommand({
  row: "disk.remove",
  usage: "remove <path>",
  summary: "Delete a file or folder below $STORAGE_DIR, also while the application may only read it",
  examples: ["berth disk remove uploads/old", "berth disk remove tmp.db --yes"],
  input: (_, { path = "" }) => ({ body: { path } }),
  warning: ({ words: { path = "", slug = "" } }) => `This deletes ${oneLine(path)} from the storage of ${slug}.`,
  typed: ({ words: { slug = "" } }) => slug,
  text: describe,
});

const addLimits = rowCommand({
  row: "disk.limits",
  usage: "limits",
  summary: "Set a project's limits (for the platform's operator)",
  examples: ["berth disk limits -p shop --org acme --storage 20480", "berth disk limits --org main --database default"],
  input: ({ org = "", ...given }) => ({ params: { org }, body: limitsOf(given) }),
  text: describe,
  options: (command) =>
    command
      .requiredOption("--org <slug>", "the organization of the project")
      .option("--storage <mib>", "for the storage folder, in MiB; `default` restores the installation's limit")
      .option("--database <mib>", "for the database")
      .option("--images <mib>", "for images and build caches")
      .option("--backups <mib>", "for backups on the platform's own disk"),
});

function limitsOf(given: Readonly<Record<string, string>>) {
  const body = Object.entries(given).map(([name, value]) => [`${name}_bytes`, bytesOf(name, value)] as const);
  if (body.length === 0) throw usageError("Nothing to change: give --storage, --database, --images or --backups.");
  return Object.fromEntries(body);
}

function bytesOf(name: string, value: string): number | null {
  if (value === "default") return null;
  return wholeNumber(value, `--${name}`, { least: 16, most: 1024 ** 3 }) * 1024 ** 2;
}

function describe(disk: Disk, paint: Paint): string {
  const { storage, database, images, backups, measured_at } = disk;
  const missing = measured_at === null ? "not measured" : "none yet";
  return facts(paint, [
    ["storage", shareText(paint, { ...storage, missing })],
    ["database", shareText(paint, { ...database, missing })],
    ["reopens", database.reopens_at === null ? null : relativeTime(database.reopens_at)],
    ["images", shareText(paint, { ...images, access: "open", missing })],
    ["backups", shareText(paint, { ...backups, access: "open", missing })],
    ["measured", measured_at === null ? "not yet" : relativeTime(measured_at)],
  ]);
}

type Share = Disk["images"] & { readonly access: string; readonly missing: string };

function shareText(paint: Paint, share: Share): string {
  const used = share.used_bytes === null ? share.missing : bytesText(share.used_bytes);
  const state = share.access === "open" ? "" : ` ${paintStatus(paint, share.access)}`;
  return `${used} of ${bytesText(share.limit_bytes)}${state}`;
}
