import { readdirSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { attempt } from "../../kit/attempt.ts";
import { run, runOk, type Command } from "../../kit/exec.ts";
import type { Log } from "../../kit/log.ts";
import { findProgram } from "./find-program.ts";

/** What every step of the set-up needs. `environment` is the one for package tools: PATH, HOME, proxies, npm's settings. */
export interface SetupContext {
  readonly environment: Readonly<Record<string, string>>;
  /** Where parts that only Berth uses are unpacked. */
  readonly toolchain: string;
  readonly log: Log;
  /** Where apt-get keeps its package lists; default: the machine's folder. */
  readonly packageLists?: string;
}

// Slow machines need more than 10 minutes, and killing apt-get leaves packages half configured.
const aptTimeoutMs = 30 * 60 * 1000;
const progressEveryMs = 10_000;
const clusterFolder = "/etc/postgresql-common/createcluster.d";

/** Returns whether this machine installs packages as Debian does. */
export function hasApt(context: SetupContext): boolean {
  return ["apt-get", "dpkg-deb"].every((name) => findProgram(name, searchPathOf(context)) !== null);
}

export function searchPathOf(context: SetupContext): string {
  return context.environment["PATH"] ?? "";
}

/** Installs packages as root, without leaving their services running or creating a cluster. Returns whether all are installed. */
export async function aptInstall(context: SetupContext, packages: readonly string[]): Promise<boolean> {
  context.log.info({ packages }, `installing ${packages.join(", ")} with apt-get`);
  const complete = await withoutMainCluster(() => installAll(context, packages));
  // systemd heeds no runlevel: Debian's own HAProxy, which would serve nothing, has been started, and would be at each boot.
  if (packages.includes("haproxy") && findProgram("systemctl", searchPathOf(context)) !== null)
    await run(
      { file: "systemctl", args: ["disable", "--now", "--quiet", "haproxy.service"] },
      { env: aptEnvironment(context), timeoutMs: 60_000 },
    );
  return complete;
}

async function installAll(context: SetupContext, packages: readonly string[]): Promise<boolean> {
  // A fresh machine or image has no package lists, so apt-get would find none of the packages.
  if (hasPackageLists(context.packageLists) && (await apt(context, installCommand(packages)))) return true;
  await apt(context, { file: "apt-get", args: ["update", "-q"] });
  if (await apt(context, installCommand(packages))) return true;
  let complete = true;
  for (const name of packages) complete = (await apt(context, installCommand([name]))) && complete;
  return complete;
}

/** Returns whether apt-get has package lists; `apt-get clean` and container images leave the folder empty. */
export function hasPackageLists(folder = "/var/lib/apt/lists"): boolean {
  return attempt(() => readdirSync(folder).some((name) => /_Packages(?:\.\w+)?$/.test(name)), false);
}

/** Returns a command that asks no questions, because no person is there to answer them. */
function installCommand(packages: readonly string[]): Command {
  const quiet = ["-y", "-q", "--no-install-recommends", "--no-upgrade"];
  const options = ["-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Options::=--force-confold"];
  return { file: "apt-get", args: ["install", ...quiet, ...options, ...packages] };
}

/** Packages to unpack into the folder `target`; `finish` completes it before it gets its name. */
interface Unpacking {
  readonly packages: readonly string[];
  readonly target: string;
  readonly finish: (folder: string) => Promise<void>;
}

/**
 * Unpacks packages, and those of their libraries that this machine lacks, without installing them, which needs no root. If the machine's
 * package lists don't have the packages, fetches lists into a scratch folder, once, because only root may refresh the machine's.
 */
export async function aptUnpack(context: SetupContext, all: readonly Unpacking[]): Promise<void> {
  await mkdir(context.toolchain, { recursive: true });
  const scratch = await mkdtemp(join(context.toolchain, "apt-"));
  const options = { env: aptEnvironment(context), timeoutMs: aptTimeoutMs };
  let state: readonly string[] = [];
  const fetchInto = async (cwd: string, packages: readonly string[]) => {
    const aptGet = (args: readonly string[]) =>
      run({ file: "apt-get", args: [...state, "-q", ...args] }, { ...options, cwd });
    const planned = await aptGet(["--simulate", "--no-install-recommends", "install", ...packages]);
    return aptGet(["download", ...new Set([...packages, ...unpackedWith(planned.stdout)])]);
  };
  const download = async (folder: string, packages: readonly string[]) => {
    if ((await fetchInto(folder, packages)).exitCode === 0) return;
    if (state.length === 0) {
      state = await ownState(scratch);
      await runOk({ file: "apt-get", args: [...state, "-q", "update"] }, options);
    }
    const { exitCode, stderr } = await fetchInto(folder, packages);
    if (exitCode !== 0) throw new Error(`apt-get download failed: ${stderr.trim().slice(-500)}`);
  };
  try {
    for (const { packages, target, finish } of all) {
      context.log.info({ packages, target }, `fetching ${packages.join(", ")} for Berth only`);
      await installInto(target, async (folder) => {
        const archives = await mkdtemp(join(scratch, "debs-"));
        await download(archives, packages);
        for (const name of await readdir(archives))
          await runOk({ file: "dpkg-deb", args: ["-x", join(archives, name), folder] });
        await finish(folder);
      }).catch((cause: unknown) => context.log.warn({ err: cause, packages }, "could not fetch the packages"));
    }
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/**
 * Returns what else to unpack, from the plan of a simulated installation, which names what this machine lacks: libraries, and PostgreSQL's
 * programs, which Debian's `postgresql` only refers to. libc must be the machine's own, and LLVM only compiles queries, which no server here does.
 */
function unpackedWith(plan: string): readonly string[] {
  const names = Array.from(plan.matchAll(/^Inst (\S+)/gm), ([, name]) => name as string);
  return names.filter((name) => /^(?:lib(?!c6|llvm|z3)|postgresql-(?:client-)?\d+$)/.test(name));
}

async function ownState(folder: string): Promise<readonly string[]> {
  await mkdir(join(folder, "state/lists/partial"), { recursive: true });
  await mkdir(join(folder, "cache/archives/partial"), { recursive: true });
  const places = [
    `Dir::State=${folder}/state`,
    `Dir::Cache=${folder}/cache`,
    "Dir::State::status=/var/lib/dpkg/status",
  ];
  return places.flatMap((place) => ["-o", place]);
}

/** Returns the environment of apt-get. Runlevel 1 keeps maintainer scripts from starting services where systemd is not in charge. */
function aptEnvironment(context: SetupContext): Readonly<Record<string, string>> {
  return { ...context.environment, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1", LC_ALL: "C.UTF-8" };
}

async function apt(context: SetupContext, command: Command): Promise<boolean> {
  const startedAtMs = Date.now();
  const seconds = () => Math.round((Date.now() - startedAtMs) / 1000);
  const action = command.args[0];
  const progress = setInterval(
    () => context.log.info({ seconds: seconds() }, `apt-get ${action} is still running`),
    progressEveryMs,
  );
  const options = { env: aptEnvironment(context), timeoutMs: aptTimeoutMs };
  const result = await run(command, options).finally(() => clearInterval(progress));
  if (result.exitCode === 0) return true;
  const why = result.stderr.trim().split("\n").at(-1) ?? "";
  context.log.warn({ command: command.args[0], why }, `apt-get ${command.args[0]} failed: ${why}`);
  return false;
}

/** Runs `work` while a file keeps Debian's PostgreSQL packages from creating and starting a cluster on installation. */
async function withoutMainCluster<T>(work: () => Promise<T>): Promise<T> {
  const file = join(clusterFolder, "berth-setup.conf");
  await mkdir(clusterFolder, { recursive: true });
  await writeFile(file, "create_main_cluster = false\n");
  try {
    return await work();
  } finally {
    await rm(file, { force: true });
  }
}

const scratchPrefix = ".part-";
const abandonedAfterMs = 60 * 60 * 1000;

/**
 * Lets `fill` write to a scratch folder and renames that to `target`, so that `target` is complete or absent. Of two at once the first to
 * finish wins, and both succeed. Leftovers of interrupted runs are removed after an hour.
 */
export async function installInto(target: string, fill: (folder: string) => Promise<void>): Promise<void> {
  const parent = dirname(target);
  await mkdir(parent, { recursive: true });
  await sweep(parent);
  const scratch = await mkdtemp(join(parent, `${scratchPrefix}${basename(target)}-`));
  try {
    const content = join(scratch, "content");
    await mkdir(content, { mode: 0o755 });
    await fill(content);
    await rename(content, target).catch(toleratePresence);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function toleratePresence(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
}

async function sweep(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(scratchPrefix)) continue;
    const path = join(parent, name);
    const found = await stat(path).catch(() => null);
    if (found && Date.now() - found.mtimeMs > abandonedAfterMs) await rm(path, { recursive: true, force: true });
  }
}
