import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { run, systemPath } from "../../kit/exec.ts";
import { unitNames } from "../../kit/tenant-group.ts";
import { readTextOrEmpty } from "../../kit/whole-file.ts";
import { StartRefused, pathsIn, type Config, type GivenSettings } from "../config.ts";

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

export const unitUsage = `Usage: berthd service install | uninstall | status [--user]

  install     write and enable systemd units; the BERTH_ variables of this call become the service's settings
  uninstall   stop the service, applications, edge and databases, and remove the units; data stays
  status      what systemd says of both units

As root, the units are system units; with --user (the default for an ordinary user) they are units of this user.`;

function placeOf({ options, config }: UnitCommand): Place {
  const unknown = options.find((option) => option !== "--user");
  if (unknown !== undefined) throw new StartRefused(`berthd service does not know "${unknown}".\n${unitUsage}`);
  return placeIn(config.isRoot && !options.includes("--user") ? "system" : "user");
}

function placeIn(scope: UnitPlan["scope"]): Place {
  if (scope === "system")
    return {
      scope,
      unitFolder: "/etc/systemd/system",
      environmentFile: "/etc/berth/berth.env",
      systemctl: [],
    };
  const settingsFolder = join(homedir(), ".config");
  return {
    scope,
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
  for (const file of restartRules(place)) {
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, restartRule, { mode: 0o644 });
  }
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

/** Restarts the control plane's service; applications, edge and databases go on. */
export async function restartUnit(scope: UnitPlan["scope"]): Promise<void> {
  await systemctl(placeIn(scope), ["restart", unitNames.controlPlane]);
}

/** Returns how often systemd has started the control plane's service again because it ended, since it was last restarted on request. */
export async function repeatedStarts(scope: UnitPlan["scope"]): Promise<number> {
  const args = ["show", "--property=NRestarts", "--value", unitNames.controlPlane];
  return Number((await callSystemctl(placeIn(scope), args)).stdout.trim()) || 0;
}

/** Returns what `berthd service install` has written for this user. */
export function unitsOf({ isRoot }: Pick<Config, "isRoot">) {
  const place = placeIn(isRoot ? "system" : "user");
  const files = [...Object.values(unitNames).map((name) => join(place.unitFolder, name)), ...restartRules(place)];
  const { environmentFile } = place;
  const folders = [environmentFile, ...restartRules(place), ...restartRules(place).map((file) => dirname(file))].map(
    (file) => dirname(file),
  );
  return {
    files: files.filter((file) => existsSync(file)),
    environmentFile,
    /** Folders that were made where they were missing, inner ones first. */
    folders,
  };
}

/** Returns the settings of the installed units; empty when there are none. */
export function unitSettings(isRoot = process.getuid?.() === 0): Readonly<Record<string, string>> {
  return parseSettings(readTextOrEmpty(placeIn(isRoot ? "system" : "user").environmentFile));
}

/** Reads a text of `settingsText`, also one that an operator has edited. */
export function parseSettings(text: string): Readonly<Record<string, string>> {
  const entries = text.split("\n").flatMap((line) => {
    const [, name, quotedValue, plain = ""] = /^\s*(BERTH_\w+)=(?:"(.*)"|([^"]*))$/.exec(line) ?? [];
    return name === undefined ? [] : [[name, quotedValue?.replaceAll(/\\(["\\`$])/g, "$1") ?? plain] as const];
  });
  return Object.fromEntries(entries);
}

/** Stops the control plane's service; applications, edge and databases go on. */
export async function stopControlPlane({ isRoot }: Pick<Config, "isRoot">): Promise<void> {
  await systemctl(placeIn(isRoot ? "system" : "user"), ["stop", unitNames.controlPlane]);
}

/** Stops both units, with everything in them, and removes them. */
export async function removeUnits({ isRoot }: Pick<Config, "isRoot">): Promise<void> {
  await remove(placeIn(isRoot ? "system" : "user"));
}

async function remove(place: Place): Promise<readonly string[]> {
  const present = Object.values(unitNames).filter((name) => existsSync(join(place.unitFolder, name)));
  if (present.length === 0) throw new StartRefused(`There is no Berth service in ${place.unitFolder}.`);
  await systemctl(place, ["disable", "--now", ...present]);
  for (const name of present) rmSync(join(place.unitFolder, name), { force: true });
  for (const file of restartRules(place)) rmSync(file, { force: true });
  await systemctl(place, ["daemon-reload"]);
  return present;
}

async function uninstall(place: Place, say: Say): Promise<void> {
  const present = await remove(place);
  say(`Removed ${present.join(" and ")}. The data folder and ${place.environmentFile} were kept.`);
}

/** The file that keeps needrestart from restarting the units after an update of a library: it would end applications and databases. */
const restartRules = ({ scope }: Place): readonly string[] =>
  scope === "system" ? ["/etc/needrestart/conf.d/berth.conf"] : [];

/** Perl, as needrestart reads it. */
export const restartRule = `# Written by \`berthd service install\`: Berth's units are restarted by their operator.
$nrconf{override_rc}{qr(^berth)} = 0;
`;

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

function userBus({ scope }: Place): Record<string, string> {
  return scope === "user" ? { XDG_RUNTIME_DIR: `/run/user/${process.getuid?.() ?? 0}`, HOME: homedir() } : {};
}

/** What the unit files depend on. */
export interface UnitPlan {
  /** `system` for root, `user` for an ordinary user's own systemd. */
  readonly scope: "system" | "user";
  /** The starter, `bin/berthd`. */
  readonly starter: string;
  readonly environmentFile: string;
  readonly dataDir: string;
  /** The PATH on which the starter finds npm, git and the machine's other tools. */
  readonly searchPath: string;
  readonly home: string;
}

export function unitTexts(plan: UnitPlan): Readonly<Record<string, string>> {
  return {
    [unitNames.controlPlane]: text(controlPlane(plan)),
    [unitNames.tenants]: text(tenants(plan)),
  };
}

type Section = readonly [name: string, lines: readonly string[]];

function text(sections: readonly Section[]): string {
  const written = sections.map(([name, lines]) => [`[${name}]`, ...lines].join("\n"));
  return `# Written by \`berthd service install\`; \`berthd service uninstall\` removes it.\n${written.join("\n\n")}\n`;
}

// Before a version that cannot start, the upgrade to it must go on, to go back. The file names the version that does that.
const continueUpgrade = 'runner=$(cat "$0" 2>/dev/null); [ ! -x "$runner" ] || exec "$runner" continue-upgrade';

function controlPlane(plan: UnitPlan): readonly Section[] {
  const isSystem = plan.scope === "system";
  return [
    [
      "Unit",
      [
        "Description=Berth, the control plane",
        `Wants=${unitNames.tenants}${isSystem ? " network-online.target" : ""}`,
        `After=${unitNames.tenants}${isSystem ? " network-online.target" : ""}`,
        "StartLimitIntervalSec=0",
      ],
    ],
    [
      "Service",
      [
        "Type=exec",
        `ExecStartPre=-/bin/sh -c ${argument(continueUpgrade)} ${argument(join(plan.dataDir, "upgrade/runner"))}`,
        `ExecStart=${quoted(plan.starter)} start`,
        `Environment=${quoted(`HOME=${plan.home}`)} ${quoted(`PATH=${plan.searchPath}`)} BERTH_ON_STOP=keep`,
        `EnvironmentFile=-${escaped(plan.environmentFile)}`,
        ...(isSystem ? ["Slice=berth.slice"] : []),
        "Restart=always",
        "RestartSec=2",
        // Only the main process is killed: running git commands end by themselves, and everything else that outlives the control plane is
        // in the other unit.
        "KillMode=process",
        "TimeoutStopSec=120",
        "OOMPolicy=continue",
        "LimitNOFILE=65536:524288",
        "TasksMax=infinity",
        ...(isSystem ? hardening : []),
      ],
    ],
    ["Install", [`WantedBy=${isSystem ? "multi-user.target" : "default.target"}`]],
  ];
}

/**
 * Restrictions under which sandboxes, package managers and applications' networks still work. None of them gives the service a mount
 * namespace (ProtectSystem=, PrivateTmp=, ProtectKernelModules= …): applications' networks are mounts below /run/netns, which the next
 * start must still see. ProtectHostname= and RestrictNamespaces= are missing because every sandbox has namespaces and a host name of its
 * own.
 */
const hardening = [
  "CapabilityBoundingSet=~CAP_SYS_MODULE CAP_SYS_RAWIO CAP_SYS_TIME CAP_SYS_BOOT CAP_SYSLOG CAP_WAKE_ALARM CAP_MAC_ADMIN CAP_MAC_OVERRIDE CAP_AUDIT_CONTROL CAP_BLOCK_SUSPEND",
  "NoNewPrivileges=yes",
  "LockPersonality=yes",
  "RestrictRealtime=yes",
  "SystemCallArchitectures=native",
  "SystemCallFilter=~@clock @module @raw-io @reboot @swap @cpu-emulation @obsolete",
  "SystemCallErrorNumber=EPERM",
  "KeyringMode=private",
];

// The shell moves itself into a leaf of the delegated group, because systemd 252 can't start it there (DelegateSubgroup= came with 254).
// cgroup v1 needs no leaf.
const keepGroup =
  'group=/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup); [ ! -e "$group/cgroup.controllers" ] || { mkdir -p "$group/keeper" && echo $$ > "$group/keeper/cgroup.procs"; }; exec sleep infinity';

// Removes the folders of sockets, which are outside of the data folder; it only records their paths. Folders in use stay, because a server
// may have started meanwhile.
const removeRunFolders =
  'for note in "$0"/run-folder "$0"/*/run-folder; do [ ! -f "$note" ] || find "$(cat "$note")" -depth -type d -empty -delete; done';

function tenants(plan: UnitPlan): readonly Section[] {
  const isSystem = plan.scope === "system";
  return [
    ["Unit", ["Description=Berth, applications, edge and databases"]],
    [
      "Service",
      [
        "Type=exec",
        `ExecStart=/bin/sh -c ${argument(keepGroup)}`,
        `ExecStopPost=-/bin/sh -c ${argument(removeRunFolders)} ${argument(plan.dataDir)}`,
        ...(isSystem ? ["Slice=berth.slice"] : []),
        "Delegate=yes",
        "OOMPolicy=continue",
        "TasksMax=infinity",
        "TimeoutStopSec=60",
      ],
    ],
  ];
}

/** Quotes a word for a unit file: percent signs are doubled, quotes and backslashes escaped (systemd.syntax(7)). */
/** Quotes a word of a command, in which systemd expands variables. */
function argument(word: string): string {
  return quoted(word.replaceAll("$", "$$$$"));
}

function quoted(word: string): string {
  return `"${escaped(word).replaceAll(/["\\]/g, "\\$&")}"`;
}

function escaped(word: string): string {
  return word.replaceAll("%", "%%");
}

/** Returns the service's settings file: those given replace lines of the same names; other lines stay. A new file gets the standard ones. */
export function settingsText(kept: string | null, given: GivenSettings, standard: GivenSettings): string {
  const wanted = { ...(kept === null ? standard : {}), ...given };
  const names = Object.keys(wanted).filter((name) => name !== "PATH" && name !== "HOME");
  const isReplaced = (line: string) => names.some((name) => line.trimStart().startsWith(`${name}=`));
  const stays = (kept ?? "").split("\n").filter((line) => line !== "" && !isReplaced(line));
  // The format of systemd.exec(5): values in double quotes, with quotes and backslashes escaped.
  const lines = names.map((name) => `${name}="${(wanted[name] ?? "").replaceAll(/["\\`$]/g, "\\$&")}"`);
  return `${[...stays, ...lines].join("\n")}\n`;
}
