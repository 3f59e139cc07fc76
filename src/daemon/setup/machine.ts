import { existsSync } from "node:fs";
import { mkdir, readFile, readdir, rename, rm, symlink } from "node:fs/promises";
import { join, relative } from "node:path";
import { run } from "../../kit/exec.ts";
import type { Log } from "../../kit/log.ts";
import { replaceFileAsync } from "../../kit/whole-file.ts";
import { aptInstall, aptUnpack, hasApt, searchPathOf, type SetupContext } from "./debian-packages.ts";
import {
  findPostgres,
  findProgram,
  findSystemProgram,
  isExecutableFile,
  libraryFolders,
  placeLauncher,
} from "./find-program.ts";

/** The parts that this machine has, and those that it lacks. */
export interface MachineParts extends Omit<FoundParts, "wantsPostgres" | "wantsHaproxy"> {
  readonly missing: readonly MissingPart[];
}

export interface MachineOptions {
  readonly dataDir: string;
  readonly log: Log;
  /** Whether to install missing parts or only to list them. */
  readonly install: boolean;
  /** The environment of package tools: PATH, HOME, proxies, npm's settings. */
  readonly environment: Readonly<Record<string, string>>;
  /** False if the databases run elsewhere: PostgreSQL is then neither searched for nor installed. Default: true. */
  readonly postgres?: boolean;
  /** Whether this process carries traffic, so that it needs HAProxy; "only": it needs nothing else. Default: true. */
  readonly edge?: boolean | "only";
  /** The HAProxy that the operator names. It is then the only one that is used. */
  readonly haproxy?: string | null;
}

/** Programs with their Debian packages. `unpacks`: an ordinary user can use the package merely unpacked; the others are root's to install. */
const packaged = [
  { program: "haproxy", package: "haproxy", unpacks: true },
  { program: "bwrap", package: "bubblewrap", unpacks: true },
  { program: "git", package: "git", unpacks: false },
  { program: "setpriv", package: "util-linux", unpacks: false },
  { program: "pasta", package: "passt", unpacks: true },
  { program: "socat", package: "socat", unpacks: true },
  { program: "nft", package: "nftables", unpacks: false },
  { program: "ip", package: "iproute2", unpacks: false },
  { program: "mkfs.ext4", package: "e2fsprogs", unpacks: false },
] as const;

/**
 * Finds the machine's parts, installs missing ones if `install` is set, and lists what stays missing with its effect and the command to
 * run. Never throws for a missing part. Safe to interrupt and to run twice at once.
 */
export async function ensureMachine(options: MachineOptions): Promise<MachineParts> {
  const { environment, log, dataDir } = options;
  const context: SetupContext = { environment, log, toolchain: join(dataDir, "toolchain") };
  const pinned = await pinnedMajor(dataDir);
  const find = () => findParts(context, pinned, options);
  let parts = await find();
  if (options.install && (await installMissing(context, parts, pinned, options))) parts = await find();
  // Before the first start, the folder is not there: only a start makes it.
  if (parts.postgresMajor !== null && existsSync(dataDir)) await pinMajor(dataDir, parts.postgresMajor);
  const { wantsPostgres: _, wantsHaproxy: __, ...found } = parts;
  return { ...found, missing: missingParts(parts, { pinnedMajor: pinned, isRoot: isRoot(), hasApt: hasApt(context) }) };
}

async function findParts(
  context: SetupContext,
  only: number | undefined,
  { postgres: wantsPostgres = true, edge = true, haproxy = null }: MachineOptions,
) {
  const searchPath = searchPathOf(context);
  const ownFolders = [join(context.toolchain, "postgresql/bin")];
  const postgres = wantsPostgres ? await findPostgres({ searchPath, ownFolders, only }) : null;
  const program = (name: string) => findProgram(name, searchPath) ?? unpackedProgram(context, name);
  const ofMachine = [findProgram("haproxy", searchPath), unpackedProgram(context, "haproxy")];
  return {
    /** False if the databases run elsewhere, so that this machine needs no PostgreSQL. */
    wantsPostgres,
    /** False if this process carries no traffic to applications. */
    wantsHaproxy: edge !== false,
    /** The folder with `initdb`, `postgres` and `pg_ctl`. */
    postgresBin: postgres?.bin ?? null,
    postgresMajor: postgres?.major ?? null,
    pgDump: postgres?.pgDump ?? null,
    pgRestore: postgres?.pgRestore ?? null,
    bwrap: program("bwrap"),
    git: program("git"),
    setpriv: program("setpriv"),
    /** HAProxy 2.6 or later. */
    haproxy: edge === false ? null : await findHaproxy(haproxy === null ? ofMachine : [haproxy]),
    nft: program("nft"),
    ip: program("ip"),
    /** Makes the file system for what an application writes to its own folder. */
    "mkfs.ext4": program("mkfs.ext4"),
    pasta: program("pasta"),
    socat: program("socat"),
    python: findSystemProgram("python3", searchPath),
    go: program("go") ?? findProgram("go", "/usr/local/go/bin"),
    npm: program("npm"),
  };
}

/** Returns the path of a program that an earlier start unpacked: of its launcher, if it has libraries of its own. */
function unpackedProgram(context: SetupContext, name: string): string | null {
  const places = ["bin", "usr/bin", "usr/sbin"].map((folder) => join(context.toolchain, name, folder, name));
  return places.find(isExecutableFile) ?? null;
}

/** Returns whether anything may have been installed. */
async function installMissing(
  context: SetupContext,
  parts: FoundParts,
  pinned: number | undefined,
  { edge = true, haproxy = null }: MachineOptions,
): Promise<boolean> {
  const isWanted = ({ program }: Packaged) =>
    program === "haproxy" ? edge !== false && haproxy === null : edge !== "only" || program === "setpriv";
  const programs = packaged.filter(
    (each) => parts[each.program] === null && isWanted(each) && (isRoot() || each.unpacks),
  );
  const lacksPostgres = parts.wantsPostgres && (parts.postgresBin === null || parts.pgDump === null);
  if ((programs.length === 0 && !lacksPostgres) || !hasApt(context)) return false;
  const suffix = pinned === undefined ? "" : `-${pinned}`;
  const postgres = lacksPostgres ? [`postgresql${suffix}`, `postgresql-client${suffix}`] : [];
  if (isRoot()) return aptInstall(context, [...postgres, ...programs.map((each) => each.package)]).then(() => true);
  const target = (name: string) => join(context.toolchain, name);
  await aptUnpack(context, [
    ...programs.map(({ program, package: name }) => ({
      packages: [name],
      target: target(program),
      finish: (to: string) => addLauncher(to, program),
    })),
    ...(lacksPostgres ? [{ packages: postgres, target: target("postgresql"), finish: addPostgresLaunchers }] : []),
  ]);
  return true;
}

type Packaged = (typeof packaged)[number];

async function addLauncher(unpacked: string, name: string): Promise<void> {
  const libraries = libraryFolders(unpacked).filter((folder) => existsSync(folder));
  const program = ["usr/bin", "usr/sbin"].map((folder) => join(unpacked, folder, name)).find(isExecutableFile);
  if (libraries.length > 0 && program !== undefined)
    await placeLauncher(join(unpacked, "bin", name), program, libraries);
}

/** Gives Debian's server the folders of one of its own, `bin` and `lib` side by side, above those of its packages. */
async function addPostgresLaunchers(unpacked: string): Promise<void> {
  const root = join(unpacked, "debian");
  const names = await readdir(unpacked);
  await mkdir(root);
  for (const name of names) await rename(join(unpacked, name), join(root, name));
  const [major = ""] = await readdir(join(root, "usr/lib/postgresql"));
  const server = join(root, "usr/lib/postgresql", major);
  for (const name of await readdir(join(server, "bin")))
    await placeLauncher(join(unpacked, "bin", name), join(server, "bin", name), libraryFolders(root));
  await symlink(relative(unpacked, join(server, "lib")), join(unpacked, "lib"));
  // It needs LLVM, and a server that finds it but cannot load it fails queries.
  await rm(join(server, "lib/llvmjit.so"), { force: true });
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** Returns the major version that the first start chose, if it did. It stays: data of one major version starts under no other. */
async function pinnedMajor(dataDir: string): Promise<number | undefined> {
  const text = await readFile(majorFile(dataDir), "utf8").catch(() => "");
  return /^\d+$/.test(text.trim()) ? Number(text) : undefined;
}

async function pinMajor(dataDir: string, major: number): Promise<void> {
  const file = majorFile(dataDir);
  await mkdir(join(dataDir, "toolchain"), { recursive: true });
  await replaceFileAsync(file, `${major}\n`);
}

function majorFile(dataDir: string): string {
  return join(dataDir, "toolchain/postgres-major");
}

/** Returns the first of these paths that is HAProxy 2.6 or later; null if none is. Older versions lack the runtime commands that the edge needs. */
export async function findHaproxy(paths: readonly (string | null)[]): Promise<string | null> {
  for (const file of paths) {
    if (file === null) continue;
    const { stdout } = await run({ file, args: ["-v"] }).catch(() => ({ stdout: "" }));
    const [, major = "0", minor = "0"] = /version (\d+)\.(\d+)/.exec(stdout) ?? [];
    if (Number(major) > 2 || (Number(major) === 2 && Number(minor) >= 6)) return file;
  }
  return null;
}

/** A part that this machine lacks: what doesn't work without it, and what to run to get it. */
interface MissingPart {
  readonly part: string;
  readonly effect: string;
  readonly command: string;
  /** True when Berth cannot start without it. */
  readonly required: boolean;
}

/** What the advice depends on besides the parts. */
export interface MachineFacts {
  /** The major version that wrote the existing data. */
  readonly pinnedMajor: number | undefined;
  readonly isRoot: boolean;
  readonly hasApt: boolean;
}

/** Returns the missing parts, required ones first. */
export function missingParts(found: FoundParts, facts: MachineFacts): readonly MissingPart[] {
  return [...postgresParts(found, facts), ...programParts(found, facts), ...networkParts(found, facts)];
}

function postgresParts(found: FoundParts, facts: MachineFacts): readonly MissingPart[] {
  if (!found.wantsPostgres) return [];
  const suffix = facts.pinnedMajor === undefined ? "" : `-${facts.pinnedMajor}`;
  if (found.postgresBin === null) {
    const what = facts.pinnedMajor === undefined ? "PostgreSQL 15 or newer" : `PostgreSQL ${facts.pinnedMajor}`;
    const why = facts.pinnedMajor === undefined ? "" : "; the existing data needs exactly this version";
    const effect = `Berth cannot store its state without PostgreSQL${why}`;
    return [{ part: what, effect, command: installAdvice([`postgresql${suffix}`], facts), required: true }];
  }
  if (found.pgDump !== null && found.pgRestore !== null) return [];
  const effect = "databases can be neither backed up nor restored";
  const command = installAdvice([`postgresql-client-${found.postgresMajor}`], facts);
  return [{ part: "pg_dump and pg_restore", effect, command, required: false }];
}

function programParts(found: FoundParts, facts: MachineFacts): readonly MissingPart[] {
  const lacking: MissingPart[] = [];
  const add = (part: string, required: boolean, effect: string, packages: readonly string[]) =>
    lacking.push({ part, effect, command: installAdvice(packages, facts), required });
  if (found.haproxy === null && found.wantsHaproxy)
    add("HAProxy 2.6 or newer", true, "Berth cannot serve applications without it", ["haproxy"]);
  if (found.git === null) add("git", true, "nothing can be pushed", ["git"]);
  if (found.bwrap === null) {
    add("bubblewrap", false, "builds and applications are not isolated from this machine", ["bubblewrap"]);
  }
  if (found.setpriv === null && facts.isRoot) {
    add("setpriv", false, "applications cannot run as separate users", ["util-linux"]);
  }
  if (found["mkfs.ext4"] === null && facts.isRoot)
    add("mkfs.ext4", false, "what applications write to their own folder counts as their memory", ["e2fsprogs"]);
  if (found.npm === null) add("npm", false, "Node applications cannot be built", ["npm"]);
  if (found.python === null) add("python3", false, "Python applications cannot be built", ["python3", "python3-venv"]);
  return lacking;
}

/** Applications get networks of their own with either pasta or, as root, nft and ip, so one of the two is enough. */
function networkParts(found: FoundParts, facts: MachineFacts): readonly MissingPart[] {
  const byRoot = facts.isRoot && found.nft !== null && found.ip !== null;
  if (found.pasta !== null || byRoot) return [];
  const packages = facts.isRoot ? ["nftables", "iproute2"] : ["passt"];
  const effect = "applications share this machine's network and can reach services on 127.0.0.1";
  return [{ part: packages.join(" and "), effect, command: installAdvice(packages, facts), required: false }];
}

function installAdvice(packages: readonly string[], facts: MachineFacts): string {
  if (!facts.hasApt) return `install ${packages.join(" and ")} with this system's package manager`;
  return `${facts.isRoot ? "" : "sudo "}apt-get install ${packages.join(" ")}`;
}

/** The absolute paths of the programs that Berth uses on this machine; null if one is missing. */
export type FoundParts = Awaited<ReturnType<typeof findParts>>;
