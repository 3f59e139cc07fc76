import { existsSync, lstatSync, readdirSync, readlinkSync, rmSync, rmdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { start } from "../../kit/exec.ts";
import { StartRefused, pathsIn, type Config } from "../config.ts";
import { isDataFolderHeld, unstartable } from "../data-folder.ts";
import { readReadiness, startEnvironment } from "../releases/control-plane.ts";
import { installationOf, programPath, type Installation } from "../releases/installation.ts";
import { endServers } from "../recovery/restore-platform.ts";
import { isUnderWay, readSteps } from "../releases/steps.ts";
import { upgradeFiles } from "../releases/upgrade-files.ts";
import { removeUnits, stopControlPlane, unitsOf } from "../systemd/run-unit-command.ts";
import { unmount } from "../volume/database-volume.ts";

type Say = (line: string) => void;

export const uninstallUsage = `Usage: berthd uninstall [--purge] [--yes]

  Ends Berth with all applications, the edge and databases, and removes its service, its commands and its versions.

  --purge  also delete the data folder, with everything in it, and the service's settings
  --yes    do it; without it, only say what would go and what would stay`;

/** Removes Berth from this machine, except for what it names. */
export async function uninstall(config: Config, args: readonly string[], say: Say): Promise<void> {
  const unknown = args.find((arg) => arg !== "--purge" && arg !== "--yes");
  if (unknown !== undefined) throw new StartRefused(`berthd uninstall does not know "${unknown}".\n${uninstallUsage}`);
  if (args.includes("--purge") && existsSync(config.dataDir) && !isDataFolder(config))
    throw new StartRefused(
      `${config.dataDir} is no data folder of Berth, so --purge does not delete it. Correct BERTH_DATA.`,
    );
  const units = unitsOf(config);
  const installation = installationOf();
  const goes = [
    ...units.files,
    ...(installation === null ? [] : partsOf(installation)),
    ...(args.includes("--purge") ? [config.dataDir, units.environmentFile] : []),
  ].filter((path) => existsSync(path) || isLink(path));
  const stays = [
    ...(args.includes("--purge") ? [] : [config.dataDir, units.environmentFile].filter((path) => existsSync(path))),
    ...(installation === null ? ["this clone"] : []),
    "~/.config/berth and ~/.cache/berth of the command line, and npm's own ~/.npm",
    "Debian packages that Berth installed (haproxy, postgresql, bubblewrap, git …), which other programs may use",
    ...(config.runtimes.includes("process") && config.runtimes.length === 1 ? [] : ["images in the Docker engine"]),
  ];
  const list = (paths: readonly string[]) =>
    paths.length === 0 ? "  nothing" : paths.map((path) => `  ${path}`).join("\n");
  if (!args.includes("--yes"))
    return say(
      `Would be removed, after everything that Berth runs has ended:\n${list(goes)}\nWould stay:\n${list(stays)}\nDo it: berthd uninstall ${args.join(" ")} --yes`.replaceAll(
        "  --yes",
        " --yes",
      ),
    );
  await endEverything(config, units.files.length > 0, say);
  if (units.files.length > 0) await removeUnits(config);
  if (goes.includes(config.dataDir)) await unmount(pathsIn(config.dataDir).databases);
  // Its own folder last: this program runs from it.
  for (const path of goes.flatMap((each) => (each === config.dataDir ? inside(each) : each)))
    rmSync(path, { recursive: true, force: true });
  if (goes.includes(config.dataDir)) removeEmpty(config.dataDir);
  // Folders that hold something else stay.
  const own = installation === null ? [] : [join(installation.prefix, "bin"), installation.prefix];
  for (const folder of [...own, ...units.folders]) removeEmpty(folder);
  say(`Removed:\n${list(goes)}\nStays:\n${list(stays)}`);
}

/** Ends what outlives the control plane: one that is started for this takes all of it over, and stops it with itself. */
export async function endEverything(config: Config, isService: boolean, say: Say): Promise<void> {
  if (isUnderWay(readSteps(upgradeFiles(config.dataDir).steps)))
    throw new StartRefused("An upgrade is under way. Wait for its end: berth platform versions");
  if (isService) await stopControlPlane(config);
  if (isDataFolderHeld(config.dataDir))
    throw new StartRefused(`Berth runs on ${config.dataDir}. Stop it (Ctrl-C, or SIGTERM), then run this again.`);
  if (unstartable(config.dataDir) !== null) return endServers(config);
  if (!existsSync(join(pathsIn(config.dataDir).ownPostgres, "data")) && config.databaseUrl === null) return;
  say("Ending applications, edge and databases");
  const env = { ...startEnvironment(config), BERTH_ON_STOP: "stop", BERTH_EXAMPLE: "0" };
  const child = start({ file: programPath("berthd"), args: ["start"] }, { env });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (output = `${output}${chunk.toString()}`.slice(-saidLength)));
  const over = new Promise<void>((resolve) => child.once("close", () => resolve()));
  while (child.exitCode === null && (await readReadiness(config)) === null) await sleep(pollMs);
  child.kill("SIGTERM");
  await over;
  if (child.exitCode !== 0)
    throw new StartRefused(`What Berth runs could not be ended, so nothing was changed:\n${output.trim()}`);
}

const saidLength = 2000;
const pollMs = 200;

/** Returns what `install.sh` has put there: the versions, and the links to them, also in folders of commands. */
function partsOf({ prefix, versions }: Installation): readonly string[] {
  const links = ["/usr/local/bin", join(homedir(), ".local/bin"), join(prefix, "bin")]
    .flatMap((folder) => ["berth", "berthd"].map((name) => join(folder, name)))
    .filter((path) => isLink(path) && readlinkSync(path).startsWith(`${prefix}/`));
  return [...new Set(links), join(prefix, "current"), versions];
}

/** What is in the data folder, which itself may be a link or a mount. */
const inside = (folder: string) => readdirSync(folder).map((name) => join(folder, name));

function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Not empty, or not there.
  }
}

/** Whether a folder holds what a start has made, and is not one that BERTH_DATA names by mistake. */
const isDataFolder = ({ dataDir }: Config) => existsSync(pathsIn(dataDir).recoveryRecipient);

const isLink = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
