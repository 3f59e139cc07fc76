import { existsSync, lchownSync, writeFileSync } from "node:fs";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough, type Writable } from "node:stream";
import { createZstdDecompress } from "node:zlib";
import { runOk } from "../../kit/exec.ts";
import { runFolder } from "../../kit/run-folder.ts";
import {
  type RecoveredInstance,
  type RecoverySource,
  DatabaseWorkFailed,
  type DatabaseSpec,
} from "../../ports/postgres-host.ts";
import { zstd } from "../../postgres/client-program.ts";
import {
  chooseConfinement,
  programEnvironment,
  sandboxOf,
  usersIn,
  writable,
  type Confinement,
} from "../../postgres/confinement.ts";
import { withConnection } from "../../postgres/connection.ts";
import { projectWork } from "../../postgres/project-work.ts";
import { lightCommand } from "../../sandbox/light-sandbox.ts";
import { placesOf } from "./confinement.ts";
import { configure } from "./initialise.ts";
import { ensureFolder, instanceFiles } from "./instance-files.ts";
import {
  createLocalServer,
  type HistoryPlace,
  type Instance,
  type LocalServer,
  type LocalServerOptions,
} from "./server.ts";
import { socketOnlyPort } from "./settings.ts";

const folderOf = ({ dir }: Instance) => join(dir, "recovered");

/** How PostgreSQL 15 says that the log has no transaction after the moment asked for: then all of it is wanted. */
const endedBefore = "recovery ended before configured recovery target was reached";

export async function recover(
  place: HistoryPlace,
  { instance, spec, from }: { instance: Instance; spec: DatabaseSpec; from: RecoverySource },
): Promise<RecoveredInstance> {
  await discardRecovered(place, instance);
  const options = optionsOf(place, instance);
  const { dir, socketDir } = options;
  const confinement = await chooseConfinement({ binDir: place.binDir, bwrap: place.bwrap, uid: instance.uid });
  ensureFolder(dir, 0o700);
  configure(confinement, dir, { port: null, socketDir, socketMode: "private", overrides: {}, isRecovered: true });
  await fillFrom(confinement, dir, from);
  const server = await startCopy(options, confinement, from);
  const copy = { ...instance, server, dir, port: socketOnlyPort, socketDir };
  const work = projectWork(() => place.projectServer(copy));
  const last_commit_at = await withConnection(server.superuserConnection("template1"), async (client) => {
    const { rows } = await client.query<{ at: Date | null }>("SELECT pg_last_xact_replay_timestamp() AS at");
    return rows[0]?.at ?? null;
  });
  return {
    last_commit_at,
    listDatabases: () => work.listDatabases(spec),
    dump: (database, dump) => work.dump({ ...spec, database_name: database }, dump),
  };
}

/** Starts a server on a filled folder, which applies the log; resolves when it can write. */
export async function startCopy(
  options: LocalServerOptions,
  confinement: Confinement,
  { until, signal }: Pick<RecoverySource, "until" | "signal">,
): Promise<LocalServer> {
  const { config } = placesOf(confinement, options.dir, options.socketDir);
  const run = async (to: Date | null) => {
    const server = createLocalServer({ ...options, settings: settingsOf(config, to) });
    await server.ensure(signal);
    return server;
  };
  try {
    return await run(until).catch((error: unknown) => {
      if (until === null || !String(error).includes(endedBefore)) throw error;
      return run(null);
    });
  } catch (error) {
    signal.throwIfAborted();
    throw new DatabaseWorkFailed("refused", `The copy cannot be recovered: ${(error as Error).message}`, error);
  }
}

export async function discardRecovered(place: HistoryPlace, instance: Instance): Promise<void> {
  const { dir, socketDir } = optionsOf(place, instance);
  await createLocalServer(optionsOf(place, instance)).stop();
  await rm(dir, { recursive: true, force: true });
  await rm(socketDir, { recursive: true, force: true });
}

function optionsOf(place: HistoryPlace, instance: Instance): LocalServerOptions {
  const { binDir, bwrap } = place;
  const dir = folderOf(instance);
  const socketDir = join(runFolder(place.dir, place.runBase), `${place.idOf(instance)}-recovered`);
  // Its processes count towards the limits of the instance, which outlive it.
  const group = place.groups && { group: { ...place.groups.of(place.idOf(instance)), remove: async () => {} } };
  return { binDir, bwrap, dir, socketDir, port: null, uid: instance.uid, isRecovered: true, ...group };
}

/** Tells the server that starts on this copy where its recovery begins. Follows no link that the copy may contain. */
export function writeLabels(confinement: Confinement, data: string, backup_label: string): void {
  for (const [name, text] of [
    ["backup_label", backup_label],
    ["recovery.signal", ""],
  ] as const) {
    const path = join(data, name);
    writeFileSync(path, text, { mode: 0o600, flag: "wx" });
    if (confinement.uid !== null) lchownSync(path, confinement.uid, confinement.uid);
  }
}

/** Fills a folder with the stored copy and, at the same time, with the log to apply to it. */
export async function fillFrom(confinement: Confinement, dir: string, from: RecoverySource): Promise<void> {
  const works = [unpack(confinement, dir, from), placeSegments(dir, from)];
  const failed = (await Promise.allSettled(works)).find(({ status }) => status === "rejected");
  if (failed !== undefined) throw (failed as PromiseRejectedResult).reason;
}

// The copy's own contents are the tenant's: files of ours are in the folder before it, and tar runs as the server's user.
async function unpack(confinement: Confinement, dir: string, from: RecoverySource): Promise<void> {
  const { data, config } = instanceFiles(dir);
  ensureFolder(data, 0o700, confinement.uid);
  writeLabels(confinement, data, from.backup_label);
  const folder = confinement.bwrap === null ? data : "/berth/data";
  const hasProgram = existsSync(zstd);
  const reading = ["--file=-", "--blocking-factor=128", ...(hasProgram ? [`--use-compress-program=${zstd}`] : [])];
  const tar = { file: "/bin/tar", args: ["--extract", ...reading, `--directory=${folder}`, "--no-same-owner"] };
  const binds = [...usersIn(config), writable(data, folder)];
  const command = confinement.bwrap === null ? tar : lightCommand({ ...sandboxOf(confinement), binds }, tar);
  const stdin = hasProgram ? new PassThrough() : createZstdDecompress({ chunkSize: 1024 ** 2 });
  const [fed, extracted] = await Promise.allSettled([
    feed(stdin, from),
    runOk(command, { env: programEnvironment, stdin, signal: from.signal }),
  ]);
  from.signal.throwIfAborted();
  if (fed.status === "rejected") throw fed.reason;
  if (extracted.status === "rejected") throw extracted.reason;
}

/** Reads the archive to its end also if nothing takes it any more: a changed one says so there. */
async function feed(into: Writable, { archive, signal }: RecoverySource): Promise<void> {
  into.on("error", () => {});
  try {
    for await (const chunk of archive) {
      signal.throwIfAborted();
      if (!into.writable) continue;
      await new Promise<void>((resolve) => {
        const done = () => (into.off("close", done), resolve());
        into.once("close", done).write(chunk, done);
      });
    }
    into.end();
  } catch (error) {
    into.destroy();
    throw error;
  }
}

const logFolder = "log";

export const logFolderOf = (dir: string) => join(instanceFiles(dir).config, logFolder);

/** Puts the segments where the server can read but not change them. */
export async function placeSegments(
  dir: string,
  { segments, segment_bytes, signal }: Pick<RecoverySource, "segments" | "segment_bytes" | "signal">,
): Promise<void> {
  const folder = logFolderOf(dir);
  ensureFolder(folder, 0o755);
  for await (const { name, content } of segments) {
    signal.throwIfAborted();
    const file = await open(join(folder, name), "wx", 0o644);
    try {
      await file.writeFile(content);
      // Recovery ends at the first record that is not whole.
      await file.truncate(segment_bytes);
    } finally {
      await file.close();
    }
  }
}

/** Settings of a server that recovers. What is kept of it is synced once it has stopped; the rest is thrown away after a crash. */
export function settingsOf(config: string, until: Date | null): Record<string, string> {
  const time = until?.toISOString().replace("T", " ").replace("Z", "+00");
  const target = time === undefined ? {} : { recovery_target_time: time, recovery_target_action: "promote" };
  return {
    ...target,
    restore_command: `exec cp "${config}/${logFolder}/%f" "%p"`,
    recovery_target_timeline: "current",
    // It answers only once it is whole.
    hot_standby: "off",
    autovacuum: "off",
    fsync: "off",
  };
}
