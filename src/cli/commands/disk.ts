import type { Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { addCommand, addGroup } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { currentProject } from "../current-project.ts";
import { usageError } from "../failures.ts";
import { wholeNumber } from "../input.ts";
import { confirm } from "../prompts.ts";
import { paintStatus, type Paint } from "../render/paint.ts";
import { facts } from "../render/table.ts";
import { oneLine, relativeTime, size } from "../render/text.ts";

type Disk = Answer<"disk.get">;

/** `berth disk`: what a project takes of the disk, and its limits. */
export function addDisk(program: Command, ctx: CliContext): void {
  const disk = addGroup(program, "disk", "Show what a project takes of the disk, and make room");
  addCommand(disk, {
    usage: "show",
    summary: "Show use and limits",
    isDefault: true,
    examples: ["berth disk", "berth disk show -p demo --json"],
  }).action(async () => {
    const slug = await currentProject(ctx);
    show(ctx, await (await ctx.client()).call("disk.get", { params: { slug } }));
  });
  addRemove(disk, ctx);
  addLimits(disk, ctx);
}

function addRemove(disk: Command, ctx: CliContext): void {
  addCommand(disk, {
    usage: "remove <path>",
    summary: "Delete a file or folder below $STORAGE_DIR, also while the application may only read it",
    examples: ["berth disk remove uploads/old", "berth disk remove tmp.db --yes"],
  })
    .option("-y, --yes", "don't ask")
    .action(async (path: string, options: { yes?: boolean }) => {
      const slug = await currentProject(ctx);
      const client = await ctx.client();
      await confirm(ctx, `This deletes ${oneLine(path)} from the storage of ${slug}.`, {
        name: slug,
        yes: options.yes,
      });
      show(ctx, await client.call("disk.remove", { params: { slug }, body: { path }, signal: ctx.signal }));
    });
}

interface LimitOptions {
  readonly org: string;
  readonly storage?: string;
  readonly database?: string;
  readonly images?: string;
}

function addLimits(disk: Command, ctx: CliContext): void {
  addCommand(disk, {
    usage: "limits",
    summary: "Set a project's limits (platform admins only)",
    examples: [
      "berth disk limits -p shop --org acme --storage 20480",
      "berth disk limits --org main --database default",
    ],
  })
    .requiredOption("--org <slug>", "the organization of the project")
    .option("--storage <mib>", "for the storage folder, in MiB; `default` restores the installation's limit")
    .option("--database <mib>", "for the database")
    .option("--images <mib>", "for images and build caches")
    .action(async ({ org, ...given }: LimitOptions) => {
      const body = Object.fromEntries(
        Object.entries(given).map(([name, value]) => [`${name}_bytes`, bytesOf(name, value as string)]),
      );
      if (Object.keys(body).length === 0)
        throw usageError("Nothing to change: give --storage, --database or --images.");
      const slug = await currentProject(ctx);
      show(ctx, await (await ctx.client()).call("disk.limits", { params: { org, slug }, body }));
    });
}

function bytesOf(name: string, value: string): number | null {
  if (value === "default") return null;
  return wholeNumber(value, `--${name}`, { least: 16, most: 1024 ** 3 }) * 1024 ** 2;
}

function show(ctx: CliContext, disk: Disk): void {
  const { storage, database, images } = disk;
  ctx.output.result(disk, (paint) =>
    facts(paint, [
      ["storage", shareText(paint, storage, storage.access)],
      ["database", shareText(paint, database, database.access)],
      ["reopens", database.reopens_at === null ? null : relativeTime(database.reopens_at)],
      ["images", shareText(paint, images, "open")],
      ["measured", disk.measured_at === null ? "not yet" : relativeTime(disk.measured_at)],
    ]),
  );
}

function shareText(paint: Paint, share: Disk["images"], access: string): string {
  const used = share.used_bytes === null ? "?" : size(share.used_bytes);
  const state = access === "open" ? "" : ` ${paintStatus(paint, access)}`;
  return `${used} of ${size(share.limit_bytes)}${state}`;
}
