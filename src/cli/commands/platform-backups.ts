import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { bytesText } from "../../kit/bytes-text.ts";
import { addCommand, listCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { CliError } from "../failures.ts";
import { patiently } from "../follow.ts";
import { paintStatus, duration, oneLine, relativeTime } from "../render/text.ts";
import { withProgress } from "../render/progress.ts";

type Backup = Answer<"platform.back_up">;

const lookEveryMs = 1000;

export function addPlatformBackups(platform: Command, ctx: CliContext): void {
  addCommand(platform, {
    usage: "backup",
    summary: "Back up the platform itself, encrypted to the recovery key; `berthd restore` sets it up elsewhere",
    examples: ["berth platform backup", "berth platform backup --no-wait --json"],
  })
    .option("--no-wait", "don't wait for the end")
    .action(async ({ wait }: { wait: boolean }) => {
      const client = await ctx.client();
      const begun = await client.call("platform.back_up", { signal: ctx.signal });
      const look = () => client.call("platform.backups", { signal: ctx.signal });
      const ended = async () => {
        for (;;) {
          const { backups } = await patiently(ctx, look);
          const found = backups.find(({ id }) => id === begun.id);
          if (found !== undefined && found.status !== "running") return found;
          await sleep(lookEveryMs, undefined, { signal: ctx.signal });
        }
      };
      const backup = wait ? await withProgress(ctx, "Backing up the platform", ended) : begun;
      if (backup.status === "failed")
        throw new CliError("refused", "backup_failed", {
          message: `The backup failed. ${backup.problem ?? ""}`.trim(),
        });
      ctx.output.result(backup, (paint) =>
        backup.status === "running"
          ? `Backing up the platform in the background: \`berth platform backups\``
          : `${paint.green("Backed up:")} ${backup.id}, ${bytesText(backup.size_bytes ?? 0)}, opened by the recovery key of ${backup.recipient}`,
      );
    });
  listCommand({
    row: "platform.backups",
    usage: "backups",
    summary: "List the backups of the platform itself",
    examples: ["berth platform backups", "berth platform backups --json"],
    items: (answer): readonly Backup[] => answer.backups,
    columns: {
      ID: ({ id }) => id,
      STATUS: ({ status }, paint) => paintStatus(paint, status),
      BY: ({ origin }) => origin,
      CREATED: ({ created_at }) => relativeTime(created_at),
      TOOK: ({ created_at, finished_at }) => (finished_at === null ? "" : duration(created_at, finished_at)),
      SIZE: ({ size_bytes }) => (size_bytes === null ? "" : bytesText(size_bytes)),
      IN: ({ storage }) => storage ?? "",
      KEY: ({ recipient }) => recipient ?? "",
      NOTE: ({ problem }) => (problem === null ? "" : oneLine(problem, 60)),
    },
    empty: "There are no backups of the platform yet: `berth platform backup` makes one.",
  })(platform, ctx);
}
