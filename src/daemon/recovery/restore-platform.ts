import { createHash } from "node:crypto";
import { createReadStream, existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { copyFile, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { Readable } from "node:stream";
import { identityToRecipient } from "age-encryption";
import {
  partsIn,
  unpackPlatform,
  type PlatformManifest,
} from "../../adapters/platform-archive-age/age-platform-archive.ts";
import { readIdentity } from "../../adapters/platform-archive-age/recovery-key.ts";
import { createLocalServer } from "../../adapters/postgres-host-local/server.ts";
import { createDiskStorage } from "../../adapters/storage-disk/disk-storage.ts";
import { forgetAllRestored } from "../../features/backups/backups.ts";
import { attachedHostnames } from "../../features/domains/domains.ts";
import { forgetRebuilds } from "../../features/images/images.ts";
import { backupListKey, completeOwnBackup, type ListedBackup } from "../../features/platform/platform.ts";
import { counted } from "../../kit/bytes-text.ts";
import { runOk } from "../../kit/exec.ts";
import { replaceFile } from "../../kit/whole-file.ts";
import { StorageMissing, type Storage } from "../../ports/storage.ts";
import { loadDatabase } from "../../postgres/whole-database.ts";
import { openDatabase } from "../../store/database.ts";
import { migrate } from "../../store/migrate.ts";
import { openWakeups } from "../../store/wakeups.ts";
import { StartRefused, givenSettings, pathsIn, type Config } from "../config.ts";
import { holdDataFolder } from "../data-folder.ts";
import { createLog } from "../log.ts";
import { openOwnDatabase, requireMatchingData } from "../own-database.ts";
import { ensureMachine } from "../setup/machine.ts";
import { storagesOf, wire } from "../wire.ts";
import { keptFiles } from "./kept-files.ts";
import { restoreProjects, type RestoredPart } from "./restore-projects.ts";

export interface RestoreRequest {
  /** `s3`, a folder like `backups` of a data folder, or the file of one backup. */
  readonly from: string;
  /** The file with the recovery key. */
  readonly key: string;
  /** The id of an older backup; null for the newest. */
  readonly backup: string | null;
}

type Say = (line: string) => void;

/** Sets up a platform in an empty data folder from its backup, without starting it. Can be repeated. Throws `StartRefused` with what to do. */
export async function restorePlatform(config: Config, request: RestoreRequest, say: Say): Promise<void> {
  const held = holdDataFolder(config.dataDir);
  try {
    await restoreHeld(config, { ...request, standby: null }, say);
  } finally {
    held.release();
  }
}

/** Does that in a data folder that this process holds, which then stands by with the backup `standby`, or with null can be started. */
export async function restoreHeld(
  config: Config,
  { standby, ...request }: RestoreRequest & { readonly standby: string | null },
  say: Say,
): Promise<void> {
  const paths = pathsIn(config.dataDir);
  await requireReplaceable(config, request);
  // A nightly backup empties it too, should this process be killed.
  const folder = paths.packing;
  await rm(folder, { recursive: true, force: true });
  try {
    await mkdir(folder, { mode: 0o700 });
    const { manifest, copy, ...opened } = await unpackBackup(config, request, say).catch(
      refused(`The backups at ${request.from} cannot be read`),
    );
    requireOwnKey(config);
    await mkdir(paths.restoring, { recursive: true });
    await clear(config);
    if (copy !== null) await runOk({ file: "cp", args: [...copying, "--", copy, paths.backups] });
    for (const [name, path] of Object.entries(keptFiles(config))) await place(join(partsIn(folder).files, name), path);
    const own = { ...opened, taken_at: manifest.taken_at, version: manifest.version };
    const parts = await fill(config, { own, identity: identityIn(request.key) }, say);
    const changed = await keepSettings(config, manifest);
    await rm(folder, { recursive: true });
    if (standby === null) await rm(paths.standby, { force: true });
    else replaceFile(paths.standby, `${standby}\n`, { flush: true });
    await rm(paths.restoring, { recursive: true });
    for (const line of report(config, { manifest, changed, ...parts })) say(line);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

// A copy may belong to somebody else, or be on a medium that cannot be written.
const copying = ["--recursive", "--no-preserve=mode,ownership", "--reflink=auto"];

/** What a data folder holds before its first start. */
const harmless = new Set(["berthd.lock", "platform-backup", "toolchain", "compiled-code", "haproxy", "lost+found"]);

const contents = async (dataDir: string) => (await readdir(dataDir)).filter((name) => !harmless.has(name));

const refused =
  (what: string) =>
  (error: unknown): never => {
    throw error instanceof StartRefused
      ? error
      : new StartRefused(`${what}: ${(error as Error).message}`, { cause: error });
  };

/** Whether an earlier restore, or a standby, has filled the data folder. */
function isReplaceable({ dataDir }: Config): boolean {
  const { restoring, standby } = pathsIn(dataDir);
  return existsSync(restoring) || existsSync(standby);
}

async function requireReplaceable(config: Config, { from, key }: RestoreRequest): Promise<void> {
  const { dataDir } = config;
  if ((await contents(dataDir)).length > 0 && !isReplaceable(config))
    throw new StartRefused(
      `The data folder ${dataDir} is not empty. A platform is restored into a new one: set BERTH_DATA, or move the folder away.`,
    );
  const inside = [from, key].find(
    (path) => existsSync(path) && `${realpathSync(path)}/`.startsWith(`${realpathSync(dataDir)}/`),
  );
  if (inside !== undefined)
    throw new StartRefused(`${inside} is in the data folder, which is emptied first. Move it to another place.`);
}

/** Refuses to replace a key file outside of the data folder: only it opens another platform's secrets. */
function requireOwnKey(config: Config): void {
  const { keyFile } = config;
  if (keyFile === null || !existsSync(keyFile) || isReplaceable(config)) return;
  const kept = join(partsIn(pathsIn(config.dataDir).packing).files, "secrets.key");
  if (!readFileSync(keyFile).equals(readFileSync(kept)))
    throw new StartRefused(
      `The file ${keyFile} of BERTH_KEY_FILE has other keys than the backup. Unset BERTH_KEY_FILE, name a new file, or move this one away.`,
    );
}

/** Removes everything but the backup that is being restored. */
async function clear(config: Config): Promise<void> {
  const { restoring, standby, packing } = pathsIn(config.dataDir);
  await endServers(config);
  for (const path of (await contents(config.dataDir)).map((name) => join(config.dataDir, name)))
    if (![restoring, standby, packing].includes(path)) await rm(path, { recursive: true, force: true });
}

/** Ends the PostgreSQL servers of a data folder without a platform, which an interrupted restore started. */
export async function endServers({ dataDir }: Pick<Config, "dataDir">): Promise<void> {
  const { ownPostgres, databases } = pathsIn(dataDir);
  const instances = existsSync(databases) ? (await readdir(databases)).map((id) => join(databases, id)) : [];
  for (const dir of [ownPostgres, ...instances]) {
    const uid = statSync(join(dir, "data"), { throwIfNoEntry: false })?.uid;
    if (uid !== undefined)
      await createLocalServer({ binDir: "", bwrap: null, dir, socketDir: "", port: null, uid }).stop();
  }
}

function identityIn(key: string): string {
  try {
    return readIdentity(key);
  } catch (error) {
    throw new StartRefused((error as Error).message, { cause: error });
  }
}

/** Opens the backup, and returns what it is and the folder that must be copied into the data folder with it. */
async function unpackBackup(config: Config, request: RestoreRequest, say: Say) {
  const identity = identityIn(request.key);
  const { content, copy } = await opened(config, request, say);
  const digest = createHash("sha256");
  let size_bytes = 0;
  const seen = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      digest.update(chunk);
      size_bytes += chunk.length;
      yield chunk;
    }
  };
  const manifest = await unpackPlatform(Readable.from(seen(content)), identity, pathsIn(config.dataDir).packing).catch(
    refused("The backup cannot be opened with this key"),
  );
  const recipient = await identityToRecipient(identity);
  return { manifest, copy, size_bytes, sha256: digest.digest("hex"), recipient };
}

async function opened(config: Config, { from, backup }: Pick<RestoreRequest, "from" | "backup">, say: Say) {
  if (from !== "s3" && existsSync(from) && statSync(from).isFile())
    return { content: createReadStream(from), copy: null };
  const { source, copy } = sourceOf(config, from);
  const listed = await chosen(source, from, backup);
  say(`Restoring ${listed.id}, taken at ${listed.taken_at} by Berth ${listed.version}`);
  return { content: await source.open(listed.storage_key), copy };
}

export async function newestBackup(config: Config, from: string): Promise<string> {
  return (await chosen(sourceOf(config, from).source, from, null)).id;
}

/** Returns the storage to read, and the folder to copy into the data folder, whose backups rows then find there. */
function sourceOf(config: Config, from: string): { readonly source: Storage; readonly copy: string | null } {
  if (from === "s3") {
    const { s3 } = storagesOf(config).named;
    if (s3 === undefined)
      throw new StartRefused("Set BERTH_S3_URL and BERTH_S3_SECRET_KEY_FILE, as the lost platform had them.");
    return { source: s3, copy: null };
  }
  if (!existsSync(from)) throw new StartRefused(`There is no file or folder ${from}.`);
  return { source: createDiskStorage({ dir: resolve(from) }), copy: resolve(from) };
}

async function chosen(source: Storage, from: string, id: string | null): Promise<ListedBackup> {
  const text = await source.open(backupListKey).then(
    async (list) => Buffer.concat(await list.toArray()).toString(),
    (error: unknown) => {
      if (error instanceof StorageMissing) return "[]";
      throw error;
    },
  );
  const list = JSON.parse(text) as readonly ListedBackup[];
  const found = id === null ? list[0] : list.find((each) => each.id === id);
  if (found !== undefined) return found;
  const known = list.map((each) => `${each.id} (${each.taken_at})`).join(", ");
  throw new StartRefused(
    known === "" ? `${from} has no backup of a platform.` : `${from} has no backup ${id}. It has ${known}.`,
  );
}

async function place(file: string, path: string): Promise<void> {
  if (!existsSync(file)) return;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await copyFile(file, path);
}

/** Fills the control database and gives projects what is theirs. */
async function fill(
  config: Config,
  { own: ownBackup, identity }: { own: Parameters<typeof completeOwnBackup>[1]; identity: string },
  say: Say,
) {
  const log = createLog({ format: config.logFormat, level: "error" });
  const { dataDir, install, toolEnvironment: environment, haproxy } = config;
  const parts = await ensureMachine({ dataDir, log, install, environment, postgres: true, haproxy });
  const own = await openOwnDatabase(config, parts, log);
  const { connection } = own;
  const database = openDatabase({ connection, log });
  try {
    if (await hasTables(database)) throw new StartRefused("The database of BERTH_DATABASE_URL is not empty.");
    const { database: file, repositories } = partsIn(pathsIn(config.dataDir).packing);
    await loadDatabase({ connection, file, program: parts.pgRestore });
    await migrate({ connection });
    await requireMatchingData(config, database.db);
    await completeOwnBackup(database.db, ownBackup);
    await forgetRebuilds(database.db);
    const beside = await forgetAllRestored(database.db);
    if (beside > 0) say(`  ${counted(beside, "database")} beside live ones are in no backup and are gone`);
    const wakeups = await openWakeups({ connection, log });
    const restored: RestoredPart[] = [];
    const { platform } = await wire({ config, parts, database, wakeups, log, identity });
    await restoreProjects(platform, repositories, (part) => {
      restored.push(part);
      say(`  ${describe(part)}`);
    });
    const domains = await attachedHostnames(database.db);
    await wakeups.close();
    return { restored, domains, addresses: platform.domains.publicAddresses };
  } finally {
    await database.close();
    await own.stop();
  }
}

const hasTables = async ({ pool }: ReturnType<typeof openDatabase>) =>
  (await pool.query("select from pg_class where relname = 'organization'")).rowCount !== 0;

function describe({ subject, part, taken_at, problem }: RestoredPart): string {
  if (problem !== null && taken_at === null) return `${subject}: ${part} NOT restored. ${problem}`;
  const lost = problem === null ? "" : `, NOT what was written later. ${problem}`;
  return `${subject}: ${part}${taken_at === null ? "" : `, as of ${taken_at}`}${lost}`;
}

type Filled = Awaited<ReturnType<typeof fill>>;

const settingsBefore = ({ dataDir }: Config) => join(dataDir, "settings-before");

/** Keeps the settings that the platform had in a file, and returns the names of those that are others now. */
async function keepSettings(config: Config, { settings }: PlatformManifest): Promise<readonly string[]> {
  const own = Object.entries(settings).filter(([name]) => name !== "PATH" && name !== "BERTH_DATA");
  const text = own.map(([name, value]) => `${name}=${value}\n`).join("");
  await writeFile(settingsBefore(config), text, { mode: 0o600 });
  const now: Readonly<Record<string, string>> = givenSettings();
  return own.filter(([name, value]) => now[name] !== value).map(([name]) => name);
}

interface Restored extends Filled {
  readonly manifest: PlatformManifest;
  readonly changed: readonly string[];
}

function report(config: Config, { manifest, restored, domains, addresses, changed }: Restored): readonly string[] {
  const lost = restored.filter(({ problem }) => problem !== null);
  return [
    "",
    `Restored the platform of ${manifest.taken_at} into ${config.dataDir}.`,
    ...(lost.length > 0
      ? ["Not restored, while everything else serves:", ...lost.map((part) => `  ${describe(part)}`)]
      : []),
    ...(domains.length > 0
      ? [`Point the records of these hostnames to ${addresses.join(", ")}:`, ...domains.map((name) => `  ${name}`)]
      : []),
    ...(changed.length > 0
      ? [`Settings that differ now: ${changed.join(", ")}. ${settingsBefore(config)} has what they were.`]
      : []),
    "Start it now: applications are built again from their repositories. The platform that was lost must not come back beside it.",
  ];
}
