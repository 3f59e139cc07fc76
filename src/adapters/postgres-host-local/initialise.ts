import { randomBytes } from "node:crypto";
import { chownSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { runOk, type Command } from "../../kit/exec.ts";
import { programEnvironment, type Confinement } from "../../postgres/confinement.ts";
import { statementSettings } from "../../postgres/statements.ts";
import { confined, placesOf, type Places } from "./confinement.ts";
import { ensureFolder, ensureSecret, instanceFiles, writeWhole } from "./instance-files.ts";
import { pgHbaConf, postgresqlConf, superuser, type ServerSettings } from "./settings.ts";

const initdbTimeoutMs = 120_000;
const unfinishedPrefix = "data.new.";

/** Creates the instance's data folder if it does not exist. The folder appears atomically; an interrupted attempt starts over. */
export async function initialise(
  confinement: Confinement,
  dir: string,
  { socketDir, isArchived }: { readonly socketDir: string; readonly isArchived: boolean },
): Promise<void> {
  const files = instanceFiles(dir);
  // Remove leftovers beside finished data, too: without a sandbox, an interrupted attempt's program may live on and create its folder again.
  removeUnfinished(dir);
  if (isInitialised(dir)) return;
  // A new name for each attempt: the program of an interrupted one may still be writing.
  const unfinished = join(dir, unfinishedPrefix + randomBytes(4).toString("hex"));
  ensureFolder(unfinished, 0o700, confinement.uid);
  writeWhole(files.initialPassword, ensureSecret(files.secret));
  if (confinement.uid !== null) chownSync(files.initialPassword, confinement.uid, confinement.uid);
  try {
    const bindings = {
      data: unfinished,
      config: files.config,
      sockets: socketDir,
      initialPassword: files.initialPassword,
    };
    const places = {
      ...placesOf(confinement, dir, socketDir),
      ...(confinement.bwrap === null ? { data: unfinished } : {}),
    };
    await runOk(confined(confinement, initdb(places, isArchived), bindings), {
      env: programEnvironment,
      timeoutMs: initdbTimeoutMs,
    });
  } finally {
    rmSync(files.initialPassword, { force: true });
  }
  renameSync(unfinished, files.data);
}

// Retries, because a program that is still writing may add files during the removal.
function removeUnfinished(dir: string): void {
  const names = readdirSync(dir).filter(
    (name) => name.startsWith(unfinishedPrefix) || name.startsWith("initial-password"),
  );
  for (const name of names) rmSync(join(dir, name), { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

/** Returns whether the instance's data folder exists, which means that it is complete. */
export function isInitialised(dir: string): boolean {
  return existsSync(join(instanceFiles(dir).data, "PG_VERSION"));
}

/** Writes the server's configuration, which the server can read but not change. It takes effect at the next start. */
export function configure(
  confinement: Confinement,
  dir: string,
  settings: Omit<ServerSettings, "socketFolder" | "countsStatements"> & { socketDir: string },
): void {
  const { config } = instanceFiles(dir);
  const uid = confinement.uid ?? process.getuid?.() ?? 0;
  ensureFolder(config, 0o755);
  const socketFolder = placesOf(confinement, dir, settings.socketDir).sockets;
  writeWhole(
    join(config, "postgresql.conf"),
    postgresqlConf({ ...settings, socketFolder, countsStatements: hasStatements(confinement) }),
    0o644,
  );
  writeWhole(join(config, "pg_hba.conf"), pgHbaConf(settings), 0o644);
  // initdb looks up the name of its user (getpwuid), but the machine has no user for a project's uid.
  writeWhole(join(config, "passwd"), `postgres:x:${uid}:${uid}::/berth:/bin/false\n`, 0o644);
  writeWhole(join(config, "group"), `postgres:x:${uid}:\n`, 0o644);
}

/** Some systems package the library apart from the server. */
function hasStatements({ binDir }: Confinement): boolean {
  return existsSync(join(dirname(binDir), "lib", `${statementSettings.shared_preload_libraries}.so`));
}

/** Throws, with a message for the operator, if another major version of PostgreSQL created the data. */
export function requireSameVersion(dir: string, engineVersion: string): void {
  const made = readFileSync(join(instanceFiles(dir).data, "PG_VERSION"), "utf8").trim();
  if (engineVersion.split(".")[0] === made) return;
  throw new Error(
    `PostgreSQL ${made} created the database in ${dir}, but the programs found are version ${engineVersion}: install PostgreSQL ${made}`,
  );
}

const versions = new Map<string, string>();

/** Returns the version of the programs, such as `15.14`. Throws, with a message for the operator, when they are missing. */
export async function engineVersionOf(binDir: string): Promise<string> {
  const file = join(binDir, "postgres");
  if (!existsSync(file))
    throw new Error("PostgreSQL 15 or later is not installed on this machine: apt-get install postgresql");
  const { ino, mtimeMs } = statSync(file);
  const key = `${file} ${ino} ${mtimeMs}`;
  const known = versions.get(key);
  if (known !== undefined) return known;
  const { stdout } = await runOk({ file, args: ["--version"] }, { timeoutMs: 10_000 });
  const version = /(\d+(?:\.\d+)?)/.exec(stdout)?.[1] ?? "unknown";
  versions.set(key, version);
  return version;
}

function initdb(places: Places, isArchived: boolean): Command {
  const access = ["--auth=scram-sha-256", `--username=${superuser}`, `--pwfile=${places.initialPassword}`];
  const content = [
    "--encoding=UTF8",
    "--locale-provider=libc",
    "--locale=C.UTF-8",
    "--data-checksums",
    ...(isArchived ? ["--wal-segsize=1"] : []),
    "--no-instructions",
  ];
  return { file: join(places.binDir, "initdb"), args: [`--pgdata=${places.data}`, ...access, ...content] };
}
