import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { versionText } from "../../kit/own-version.ts";
import { addCommand, actCommand, rowCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { CliError } from "../failures.ts";
import { paintStatus, facts, table, type Paint } from "../render/text.ts";
import { withProgress } from "../render/progress.ts";

type Versions = Answer<"platform.versions">;

export function addVersions(platform: Command, ctx: CliContext): void {
  rowCommand({
    row: "platform.versions",
    usage: "versions",
    summary: "Show the installed versions of Berth, what runs from each, and the newest upgrade",
    examples: ["berth platform versions"],
    text: describe,
  })(platform, ctx);
  addUpgrade(platform, ctx);
  actCommand({
    row: "platform.finalize",
    usage: "finalize",
    summary: "Apply the migrations that the version before would not survive; then there is no way back to it",
    examples: ["berth platform finalize"],
    warning: () => "The version before this one can then no longer run on the database.",
    typed: () => "finalize",
    text: describe,
  })(platform, ctx);
}

function addUpgrade(platform: Command, ctx: CliContext): void {
  addCommand(platform, {
    usage: "upgrade [release]",
    summary:
      "Upgrade Berth to the newest release, or to a version, an address or an archive; it goes back by itself if that fails",
    examples: [
      "berth platform upgrade",
      "berth platform upgrade 0.2.0",
      "berth platform upgrade ./berth-0.2.0-linux-x64.tar.zst",
    ],
  })
    .option(
      "--without-backup",
      "do not back the platform up before, for example because the storage of backups is away",
    )
    .action(async (given: string | undefined, options: { readonly withoutBackup?: true }) => {
      const client = await ctx.client();
      const file = given === undefined ? undefined : resolve(ctx.environment.cwd, given);
      const source = file !== undefined && existsSync(file) ? file : given;
      const without_backup = options.withoutBackup ?? false;
      await client.call("platform.upgrade", { body: { source, without_backup } });
      const look = () => client.call("platform.versions", {});
      const shown = await withProgress(ctx, "Upgrading Berth; applications go on", (say) => ended(look, say));
      ctx.output.result(shown, (paint) => describe(shown, paint));
      if (shown.upgrade?.status !== "done") throw upgradeFailed(shown.upgrade);
    });
}

const lookEveryMs = 1000;
/** The control plane does not answer while it is replaced; an upgrade that goes back replaces it twice. */
const mostFailures = 600;

async function ended(look: () => Promise<Versions>, say: (label: string) => void): Promise<Versions> {
  let failures = 0;
  for (;;) {
    const shown = await look().catch((error: unknown) => {
      failures += 1;
      if (failures > mostFailures) throw error;
    });
    const status = shown?.upgrade?.status ?? "in_progress";
    if (shown !== undefined && status !== "in_progress") return shown;
    if (shown !== undefined) say(`Upgrading Berth: ${shown.upgrade?.steps.at(-1)?.step ?? "requested"}`);
    await sleep(lookEveryMs);
  }
}

function upgradeFailed(upgrade: Versions["upgrade"]): CliError {
  const kept =
    upgrade?.status === "went_back"
      ? `Berth went back to ${upgrade.from}.`
      : `Berth ${upgrade?.from ?? ""} runs as before.`;
  return new CliError("refused", "upgrade_failed", { message: `${kept} ${upgrade?.reason ?? ""}`.trim() });
}

function describe({ installed, newer, unfinalized, upgrade, ...running }: Versions, paint: Paint): string {
  const shown = facts(paint, [
    ["running", versionText(running)],
    ["newer", newer === null ? null : `${newer}: berth platform upgrade`],
    ["unfinalized", unfinalized.join(", ") || null],
    [
      "last upgrade",
      upgrade === null
        ? null
        : `${upgrade.from} to ${upgrade.to ?? "a release"}: ${paintStatus(paint, upgrade.status)} ${upgrade.reason ?? ""}`.trimEnd(),
    ],
  ]);
  if (installed.length === 0) return `${shown}\nIt runs from a clone, which \`git pull\` updates.`;
  const rows = installed.map((each) => [versionText(each), each.current ? "yes" : "", String(each.processes)]);
  return `${shown}\n\n${table(paint, ["VERSION", "CURRENT", "PROCESSES"], rows, "")}`;
}
