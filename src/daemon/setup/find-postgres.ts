import { readdirSync, realpathSync } from "node:fs";
import { delimiter, dirname, isAbsolute, join } from "node:path";

import { run } from "../../kit/exec.ts";
import { isExecutableFile } from "./find-program.ts";

/** A PostgreSQL server on this machine. `bin` holds at least `initdb`, `postgres` and `pg_ctl`. */
export interface PostgresInstallation {
  readonly bin: string;
  readonly major: number;
  /** The client program, of the same or a newer major version; null if there is none. */
  readonly pgDump: string | null;
  readonly pgRestore: string | null;
}

/** Where to search. `only` restricts the search to one major version, because existing data starts under no other. */
export interface PostgresSearch {
  readonly searchPath: string;
  /** Folders of installations made by Berth itself. */
  readonly ownFolders: readonly string[];
  readonly only?: number | undefined;
}

/** The oldest major version that Berth supports. */
const oldestPostgresMajor = 15;

const servers = ["initdb", "postgres", "pg_ctl"];

/**
 * Returns the best installation: one with client programs before one without, then the system's (newest first) before Berth's own. Null if
 * none has a supported major version.
 */
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
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
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
