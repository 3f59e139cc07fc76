import { diskFault } from "../kit/disk-fault.ts";
import { StartRefused, adoptSettings, givenSettings, readConfig, type Config } from "./config.ts";
import { unstartable } from "./data-folder.ts";
import { versionText } from "../kit/own-version.ts";
import { programPath } from "./releases/installation.ts";
import { continueUpgrade } from "./releases/upgrades.ts";

const usage = `Usage: berthd start [--roles=api,git,reconcile,edge] | rotate-secrets | restore | follow | promote | doctor | support-bundle | volume | service | uninstall | --version | --help

  start            start the platform in the foreground (the default); with --roles only a part of it, on a shared database
  rotate-secrets   encrypt all secrets in the database with a new key
  restore          set up a lost platform from its backup: berthd restore s3|FOLDER|FILE --key FILE [--backup ID]
  follow, promote  keep a standby: berthd follow s3|FOLDER --key FILE; berthd promote makes it the platform
  doctor           examine what Berth needs on this machine: berthd doctor [--fix] [--json]
  support-bundle   write an archive for a question about Berth
  volume           let branches of databases share disk blocks: berthd volume SIZE | remove
  uninstall        remove Berth from this machine: berthd uninstall [--purge] [--yes]
  service          run as a systemd service: install | uninstall | status

Settings are environment variables; docs/config.md lists them.`;

const say = (line: string) => void process.stdout.write(`${line}\n`);

/** Does what the command line says. Prints why if that fails, and exits with 1. */
export async function runBerthd(args: readonly string[]): Promise<void> {
  await run(args).catch((error: unknown) => {
    process.stderr.write(`berthd: ${textOf(error)}\n`);
    process.exit(1);
  });
}

async function run(args: readonly string[]): Promise<void> {
  const [verb = "start"] = args;
  if (verb === "--help" || verb === "help") return say(usage);
  if (verb === "--version") return say(versionText());
  if (verb === "start") return runChecked(readConfigOrRefuse(optionsOf(args.slice(1))));
  if (verb === "upgrade") return (await import("./releases/run-upgrade.ts")).runUpgrade(readConfigOrRefuse());
  if (verb === "continue-upgrade") return continueUpgrade(readConfigOrRefuse());
  if (verb === "rehearse") return (await import("./releases/rehearse.ts")).rehearse(readConfigOrRefuse(), args[1]);
  if (verb === "rotate-secrets") return (await import("./rotate-secrets.ts")).rotateSecrets(readConfigOrRefuse(), say);
  const machineVerb = machineVerbs[verb];
  if (machineVerb !== undefined) {
    adoptSettings((await import("./systemd/run-unit-command.ts")).unitSettings());
    return machineVerb(args.slice(1));
  }
  if (verb === "service") return runUnits(args.slice(1));
  throw new StartRefused(`berthd does not know "${verb}".\n${usage}`);
}

async function runUnits(args: readonly string[]): Promise<void> {
  const [verb, ...options] = args;
  const { runUnitCommand, unitUsage } = await import("./systemd/run-unit-command.ts");
  if (args.some((arg) => arg === "--help" || arg === "-h" || arg === "help")) return say(unitUsage);
  const starter = programPath("berthd");
  await runUnitCommand({ verb, options, config: readConfigOrRefuse(), given: givenSettings(), starter }, say);
}

type Verb = (args: readonly string[]) => Promise<void>;

const isHelp = (arg: string) => arg === "--help" || arg === "-h" || arg === "help";

/** What is done with the machine, whether Berth runs or not. */
const machineVerbs: Readonly<Record<string, Verb>> = {
  async restore(args) {
    const { restoreCommand, restoreUsage } = await import("./recovery/restore-command.ts");
    return args.some(isHelp) ? say(restoreUsage) : restoreCommand(readConfigOrRefuse(), args, say);
  },
  async follow(args) {
    const { follow, standbyUsage } = await import("./recovery/restore-command.ts");
    return args.some(isHelp) ? say(standbyUsage) : follow(readConfigOrRefuse(), args, say);
  },
  async promote(args) {
    const { promote, standbyUsage } = await import("./recovery/restore-command.ts");
    if (args.some(isHelp)) return say(standbyUsage);
    if (args.length > 0) throw new StartRefused(standbyUsage);
    const config = readConfigOrRefuse();
    await promote(config, say);
    return runChecked(config);
  },
  async doctor(args) {
    const { doctor, doctorUsage } = await import("./doctor/doctor.ts");
    if (args.some(isHelp)) return say(doctorUsage);
    if (!(await doctor(readConfigOrRefuse(), args, say))) process.exitCode = 1;
  },
  async "support-bundle"(args) {
    const { supportBundle, bundleUsage } = await import("./doctor/support-bundle.ts");
    return args.some(isHelp) ? say(bundleUsage) : supportBundle(readConfigOrRefuse(), args, say);
  },
  async volume(args) {
    const { volumeCommand, volumeUsage } = await import("./volume/volume-command.ts");
    return args.some(isHelp) ? say(volumeUsage) : volumeCommand(readConfigOrRefuse(), args, say);
  },
  async uninstall(args) {
    const { uninstall, uninstallUsage } = await import("./doctor/uninstall.ts");
    return args.some(isHelp) ? say(uninstallUsage) : uninstall(readConfigOrRefuse(), args, say);
  },
};

/** Converts the options of `start` to the settings that they stand for. */
function optionsOf(args: readonly string[]): Readonly<Record<string, string>> {
  const entries = args.map((arg) => {
    const roles = /^--roles=(.*)$/.exec(arg)?.[1];
    if (roles === undefined) throw new StartRefused(`berthd start does not know "${arg}".\n${usage}`);
    return ["BERTH_ROLES", roles] as const;
  });
  return Object.fromEntries(entries);
}

function readConfigOrRefuse(options: Readonly<Record<string, string>> = {}): Config {
  try {
    return readConfig(undefined, options);
  } catch (error) {
    throw new StartRefused((error as Error).message);
  }
}

async function runChecked(config: Config): Promise<void> {
  // Whatever the shell hides from others, users of applications read what Berth writes for them; what they may not read has its own mode.
  process.umask(0o022);
  const refusal = unstartable(config.dataDir);
  if (refusal !== null) throw new StartRefused(refusal);
  // Here, so that an upgrade to a version that fails further on goes back.
  await continueUpgrade(config);
  const { runPlatform } = await import("./run-platform.ts");
  await runPlatform(config, say);
}

const diskFull =
  "The disk of the data folder (BERTH_DATA, by default ~/.berth) is full. Free some space on it, then start again: nothing is lost.";

function textOf(error: unknown): string {
  if (diskFault(error) === "full") return diskFull;
  if (error instanceof StartRefused) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
