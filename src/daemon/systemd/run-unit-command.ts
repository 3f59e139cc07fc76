import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { run, systemPath } from "../../kit/exec.ts";
import { unitNames } from "../../kit/tenant-group.ts";
import { pathsIn, type Config, type GivenSettings } from "../config.ts";
import { StartRefused } from "../start-refused.ts";
import { settingsText, unitTexts, type UnitPlan } from "./unit-texts.ts";

type Say = (line: string) => void;

export interface UnitCommand {
  readonly verb: string | undefined;
  readonly options: readonly string[];
  readonly config: Config;
  /** The settings in the environment, which become the service's. */
  readonly given: GivenSettings;
  readonly starter: string;
}

interface Place {
  readonly scope: UnitPlan["scope"];
  readonly unitFolder: string;
  readonly environmentFile: string;
  /** The first arguments of every systemctl call. */
  readonly systemctl: readonly string[];
}

/** Runs `berthd service`: manages a systemd unit for the control plane, and one for everything that outlives it. */
export async function runUnitCommand(command: UnitCommand, say: Say): Promise<void> {
  const place = placeOf(command);
  switch (command.verb) {
    case "install":
      return install(command, place, say);
    case "uninstall":
      return uninstall(place, say);
    case "status":
      return status(place, say);
    default:
      throw new StartRefused(unitUsage);
  }
}

/** The help of `berthd service`. */
export const unitUsage = `Usage: berthd service install | uninstall | status [--user]

  install     write and enable systemd units; the BERTH_ variables of this call become the service's settings
  uninstall   stop the service, applications, edge and databases, and remove the units; data stays
  status      what systemd says of both units

As root, the units are system units; with --user (the default for an ordinary user) they are units of this user.`;

function placeOf({ options, config }: UnitCommand): Place {
  const unknown = options.find((option) => option !== "--user");
  if (unknown !== undefined) throw new StartRefused(`berthd service does not know "${unknown}".\n${unitUsage}`);
  if (config.isRoot && !options.includes("--user"))
    return {
      scope: "system",
      unitFolder: "/etc/systemd/system",
      environmentFile: "/etc/berth/berth.env",
      systemctl: [],
    };
  const settingsFolder = join(homedir(), ".config");
  return {
    scope: "user",
    unitFolder: join(settingsFolder, "systemd", "user"),
    environmentFile: join(settingsFolder, "berth", "berthd.env"),
    systemctl: ["--user"],
  };
}

async function install({ config, given, starter }: UnitCommand, place: Place, say: Say): Promise<void> {
  if (!existsSync("/run/systemd/system"))
    throw new StartRefused("This machine was not started with systemd. `berthd start` runs Berth in the foreground.");
  const { scope, unitFolder, environmentFile } = place;
  const searchPath = given.PATH ?? systemPath;
  writeSettings(environmentFile, given, { ...config.toolEnvironment, BERTH_DATA: config.dataDir });
  const texts = unitTexts({ scope, starter, environmentFile, searchPath, home: homedir(), dataDir: config.dataDir });
  mkdirSync(unitFolder, { recursive: true });
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(unitFolder, name), text, { mode: 0o644 });
  await systemctl(place, ["daemon-reload"]);
  await systemctl(place, ["enable", unitNames.controlPlane]);
  const prefix = ["systemctl", ...place.systemctl].join(" ");
  say(`Wrote ${Object.keys(texts).join(" and ")} to ${unitFolder}; the settings are in ${environmentFile}.
Start it:   ${prefix} start berth
Watch it:   ${["journalctl", ...place.systemctl].join(" ")} -u berth -f
Log in:     berth login http://127.0.0.1:${config.httpPort} --token-file ${pathsIn(config.dataDir).adminToken}
\`${prefix} stop berth\` leaves applications running; with BERTH_ON_STOP=stop in the settings it ends them, as \`${prefix} stop berth berth-tenants\` does.`);
  if (scope === "user") say("To let it run while you are not logged in: `loginctl enable-linger`");
}

function writeSettings(file: string, given: GivenSettings, standard: GivenSettings): void {
  mkdirSync(join(file, ".."), { recursive: true, mode: 0o700 });
  const text = settingsText(existsSync(file) ? readFileSync(file, "utf8") : null, given, standard);
  writeFileSync(file, text, { mode: 0o600 });
}

async function uninstall(place: Place, say: Say): Promise<void> {
  const names = [unitNames.controlPlane, unitNames.tenants];
  const present = names.filter((name) => existsSync(join(place.unitFolder, name)));
  if (present.length === 0) throw new StartRefused(`There is no Berth service in ${place.unitFolder}.`);
  await systemctl(place, ["disable", "--now", ...present]);
  for (const name of present) rmSync(join(place.unitFolder, name), { force: true });
  await systemctl(place, ["daemon-reload"]);
  say(`Removed ${present.join(" and ")}. The data folder and ${place.environmentFile} were kept.`);
}

async function status(place: Place, say: Say): Promise<void> {
  const { stdout, stderr } = await callSystemctl(place, [
    "status",
    "--no-pager",
    "--lines=5",
    unitNames.controlPlane,
    unitNames.tenants,
  ]);
  say((stdout + stderr).trimEnd());
}

async function systemctl(place: Place, args: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await callSystemctl(place, args);
  if (exitCode !== 0) throw new StartRefused(`systemctl ${args.join(" ")} failed: ${stderr.trim()}`);
}

async function callSystemctl(place: Place, args: readonly string[]) {
  const env = { PATH: systemPath, ...userBus(place) };
  return run({ file: "systemctl", args: [...place.systemctl, ...args] }, { env, timeoutMs: 180_000 });
}

/** Returns the variables by which `systemctl --user` finds the user's systemd. */
function userBus({ scope }: Place): Record<string, string> {
  return scope === "user" ? { XDG_RUNTIME_DIR: `/run/user/${process.getuid?.() ?? 0}`, HOME: homedir() } : {};
}
