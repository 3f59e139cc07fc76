import { accessSync, constants, readdirSync, realpathSync, statSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { delimiter, dirname, isAbsolute, join, relative } from "node:path";
import { attempt } from "../../kit/attempt.ts";
import { run } from "../../kit/exec.ts";
import { replaceFileAsync } from "../../kit/whole-file.ts";

/** Folders of system programs that an ordinary user's PATH often leaves out. */
const systemFolders = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin"];

/** Returns the absolute path of a program, searching `searchPath` (colon-separated) and then the system's folders; null if it is in neither. */
export function findProgram(name: string, searchPath: string): string | null {
  const folders = [...searchPath.split(delimiter).filter(isAbsolute), ...systemFolders];
  return folders.map((folder) => join(folder, name)).find(isExecutableFile) ?? null;
}

/** Like `findProgram`, but only below /usr: sandboxes that run the program see /usr, and nothing that a user installed in a home folder. */
export function findSystemProgram(name: string, searchPath: string): string | null {
  const folders = [...searchPath.split(delimiter).filter(isAbsolute), ...systemFolders];
  const found = folders.map((folder) => join(folder, name)).filter(isExecutableFile);
  return found.find((path) => path.startsWith("/usr/") && realpathSync(path).startsWith("/usr/")) ?? null;
}

export function isExecutableFile(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** A PostgreSQL server on this machine. `bin` holds at least `initdb`, `postgres` and `pg_ctl`. */
interface PostgresInstallation {
  readonly bin: string;
  readonly major: number;
  /** The client program, of the same or a newer major version; null if there is none. */
  readonly pgDump: string | null;
  readonly pgRestore: string | null;
}

/** Where to search. `only` restricts the search to one major version, because existing data starts under no other. */
interface PostgresSearch {
  readonly searchPath: string;
  /** Folders of installations made by Berth itself. */
  readonly ownFolders: readonly string[];
  readonly only?: number | undefined;
}

const oldestPostgresMajor = 15;

const servers = ["initdb", "postgres", "pg_ctl"];

/** Returns the best installation: with client programs, then the system's (newest first), then Berth's own. Null without a supported one. */
export async function findPostgres(search: PostgresSearch): Promise<PostgresInstallation | null> {
  const wanted = (found: PostgresInstallation) =>
    found.major >= oldestPostgresMajor && (search.only === undefined || found.major === search.only);
  const system = (await inspectAll(systemBins(search.searchPath))).filter(wanted);
  const own = (await inspectAll(search.ownFolders)).filter(wanted);
  system.sort((a, b) => b.major - a.major);
  const all = [...system, ...own];
  return all.find((found) => found.pgDump !== null) ?? all[0] ?? null;
}

/** Returns the folders of real installations only: Debian's /usr/bin/pg_dump is a wrapper that chooses a cluster by itself. */
function systemBins(searchPath: string): readonly string[] {
  const fixed = ["/usr/local/pgsql/bin"];
  const debian = children("/usr/lib/postgresql").map((major) => `/usr/lib/postgresql/${major}/bin`);
  const redHat = children("/usr").filter((name) => name.startsWith("pgsql-"));
  const alpine = children("/usr/libexec").filter((name) => name.startsWith("postgresql"));
  const onPath = searchPath.split(delimiter).filter(isAbsolute).map(postgresFolder);
  return [
    ...debian,
    ...redHat.map((name) => `/usr/${name}/bin`),
    ...alpine.map((name) => `/usr/libexec/${name}`),
    ...fixed,
    ...onPath.filter((folder) => folder !== null),
  ];
}

function postgresFolder(folder: string): string | null {
  const program = join(folder, "postgres");
  return isExecutableFile(program) ? dirname(realpathSync(program)) : null;
}

function children(folder: string): readonly string[] {
  return attempt(() => readdirSync(folder), []);
}

async function inspectAll(bins: readonly string[]): Promise<PostgresInstallation[]> {
  const found = await Promise.all([...new Set(bins)].map(inspect));
  return found.filter((installation) => installation !== null);
}

async function inspect(bin: string): Promise<PostgresInstallation | null> {
  if (!servers.every((name) => isExecutableFile(join(bin, name)))) return null;
  const major = await majorOf(join(bin, "postgres"));
  if (major === null) return null;
  const [pgDump, pgRestore] = await Promise.all([client(bin, "pg_dump", major), client(bin, "pg_restore", major)]);
  return { bin, major, pgDump, pgRestore };
}

async function client(bin: string, name: string, serverMajor: number): Promise<string | null> {
  const path = join(bin, name);
  const major = await majorOf(path);
  return major !== null && major >= serverMajor ? path : null;
}

/** Returns the major version that `--version` prints; null if the program is absent or can't run (a library is missing). */
async function majorOf(program: string): Promise<number | null> {
  if (!isExecutableFile(program)) return null;
  const result = await run({ file: program, args: ["--version"] }, { timeoutMs: 60_000 }).catch(() => null);
  const match = /\(PostgreSQL\) (\d+)/.exec(result?.stdout ?? "");
  return result?.exitCode === 0 && match ? Number(match[1]) : null;
}

/** Writes a script that runs an unpacked program with its libraries. Paths are relative to the script, so that the data folder can be moved. */
export async function placeLauncher(launcher: string, program: string, libraries: readonly string[]): Promise<void> {
  const here = '"$(dirname -- "$0")"';
  const from = dirname(launcher);
  const text = [
    "#!/bin/sh",
    `LD_LIBRARY_PATH=${libraries.map((folder) => `${here}/${relative(from, folder)}`).join(":")}`,
    "export LD_LIBRARY_PATH",
    `exec ${here}/${relative(from, program)} "$@"`,
    "",
  ].join("\n");
  await mkdir(from, { recursive: true });
  await replaceFileAsync(launcher, text, { mode: 0o755 });
}

/** Returns the folders below `unpacked` in which Debian's packages place libraries. */
export function libraryFolders(unpacked: string): readonly string[] {
  const triplet = `${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu`;
  return [`${unpacked}/usr/lib/${triplet}`, `${unpacked}/lib/${triplet}`];
}
