import { existsSync, lchownSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline, type Writable } from "node:stream";
import { createZstdDecompress } from "node:zlib";
import { start, type Command } from "../../kit/exec.ts";
import { runFolder } from "../../kit/run-folder.ts";
import {
  type RecoveredInstance,
  type RecoverySource,
  DatabaseWorkFailed,
  type DatabaseSpec,
} from "../../ports/postgres-host.ts";
import { endOf, zstd } from "../../postgres/client-program.ts";
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
import type { SandboxBind } from "../../sandbox/spec.ts";
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
import { PortTaken } from "./start-server.ts";

export const recoveredName = "recovered";

/** How PostgreSQL 15 says that the log has no transaction after the moment asked for: then all of it is wanted. */
const endedBefore = "recovery ended before configured recovery target was reached";

export async function recover(
  place: HistoryPlace,
  { instance, spec, from }: { instance: Instance; spec: DatabaseSpec; from: RecoverySource },
): Promise<RecoveredInstance> {
  await discardCopy(place, instance, recoveredName);
  const options = { ...copyBeside(place, instance, recoveredName), port: null, isRecovered: true };
  const { dir, socketDir } = options;
  const confinement = await chooseConfinement({ binDir: place.binDir, bwrap: place.bwrap, uid: instance.uid });
  ensureFolder(dir, 0o700);
  configure(confinement, dir, { port: null, socketDir, socketMode: "private", overrides: {}, isRecovered: true });
  await fillFrom(confinement, dir, from);
  const server = await startCopy(options, from);
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
  { until, signal }: Pick<RecoverySource, "until" | "signal">,
): Promise<LocalServer> {
  const run = async (to: Date | null) => {
    const server = createLocalServer({ ...options, settings: settingsOf(to) });
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
    const known = roomOr(error as Error);
    if (known instanceof DatabaseWorkFailed || error instanceof PortTaken) throw known;
    throw new DatabaseWorkFailed("refused", `The copy cannot be recovered: ${(error as Error).message}`, error);
  }
}

/** Discards the copy of an instance that has this name, with its server. */
export async function discardCopy(place: HistoryPlace, instance: Instance, name: string): Promise<void> {
  const copy = copyBeside(place, instance, name);
  await createLocalServer({ ...copy, port: null }).stop();
  for (const folder of [copy.dir, copy.socketDir]) await rm(folder, { recursive: true, force: true });
}

/** Returns where the copy of an instance with this name is. Its processes count towards the limits of the instance, which outlive it. */
export function copyBeside(place: HistoryPlace, instance: Instance, name: string) {
  const { binDir, bwrap, groups } = place;
  const id = place.idOf(instance);
  return {
    ...{ binDir, bwrap, uid: instance.uid, dir: join(instance.dir, name) },
    socketDir: join(runFolder(place.dir, place.runBase), `${id}-${name}`),
    ...(groups && { group: { ...groups.of(id), remove: async () => {} } }),
  };
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
  const works = [unpack(confinement, dir, from), placeSegments(confinement, dir, from)];
  const failed = (await Promise.allSettled(works)).find(({ status }) => status === "rejected");
  if (failed !== undefined) throw roomOr((failed as PromiseRejectedResult).reason as Error);
  giveLog(dir);
}

/** Returns a failure that says so where the disk is full, and any other error as it is. */
function roomOr(error: Error): Error {
  const isFull = /ENOSPC|EDQUOT|No space left on device|Disk quota exceeded/.test(error.message);
  return isFull ? new DatabaseWorkFailed("full", "The disk has no room for the copy.", error) : error;
}

// The copy's own contents are the tenant's: files of ours are in the folder before it, and programs read it as the server's user.
async function unpack(confinement: Confinement, dir: string, from: RecoverySource): Promise<void> {
  const { data, config } = instanceFiles(dir);
  const { archive, path, signal } = from;
  ensureFolder(data, 0o700, confinement.uid);
  writeLabels(confinement, data, from.backup_label);
  const isConfined = confinement.bwrap !== null;
  const folder = isConfined ? "/berth/data" : data;
  const confined = (command: Command, binds: readonly SandboxBind[]) =>
    isConfined ? lightCommand({ ...sandboxOf(confinement), binds: [...usersIn(config), ...binds] }, command) : command;
  const options = { env: programEnvironment, ownGroup: true };
  const reading = ["--extract", "--file=-", "--blocking-factor=128", `--directory=${folder}`, "--no-same-owner"];
  const hasProgram = existsSync(zstd);
  const file = hasProgram && path !== undefined ? await open(path) : undefined;
  const tar = start(confined({ file: "/bin/tar", args: reading }, [writable(data, folder)]), options);
  const ended = [endOf(tar, signal)];
  let into: Writable | null;
  if (hasProgram) {
    const unzip = confined({ file: zstd, args: ["--decompress", "--quiet", "--stdout"] }, []);
    const child = start(unzip, { ...options, into: tar.stdin, ...(file ? { from: file.fd } : {}) });
    ended.push(endOf(child, signal));
    into = child.stdin;
    // The other program has the only other end, so that tar's input ends with it.
    tar.stdin.on("error", () => {}).destroy();
  } else {
    const unzip = createZstdDecompress({ chunkSize: 1024 ** 2 });
    pipeline(unzip, tar.stdin, () => {});
    into = unzip;
  }
  const [fed, ...ends] = await Promise.allSettled([feed(into, { archive, signal }), ...ended]);
  await file?.close();
  signal.throwIfAborted();
  if (fed.status === "rejected") throw fed.reason;
  for (const { value } of ends as PromiseFulfilledResult<Awaited<(typeof ended)[number]>>[])
    if (value.exitCode !== 0) throw new Error(`the copy cannot be unpacked: ${value.stderr.slice(-500)}`);
}

/** Reads the archive to its end also if nothing takes it (any more): a changed one says so there. */
async function feed(
  into: Writable | null,
  { archive, signal }: Pick<RecoverySource, "archive" | "signal">,
): Promise<void> {
  into?.on("error", () => {});
  try {
    for await (const chunk of archive) {
      signal.throwIfAborted();
      if (!into?.writable) continue;
      await new Promise<void>((resolve) => {
        const done = () => (into.off("close", done), resolve());
        into.once("close", done).write(chunk, done);
      });
    }
    into?.end();
  } catch (error) {
    into?.destroy();
    throw error;
  }
}

const logFolderOf = (dir: string) => join(dir, "log");

/** Puts the segments beside the data, which is the tenant's and still being filled. */
export async function placeSegments(
  { uid }: Confinement,
  dir: string,
  { segments, segment_bytes, signal }: Pick<RecoverySource, "segments" | "segment_bytes" | "signal">,
): Promise<void> {
  const folder = logFolderOf(dir);
  ensureFolder(folder, 0o700, uid);
  for await (const { name, content } of segments) {
    signal.throwIfAborted();
    const file = await open(join(folder, name), "wx", 0o600);
    try {
      if (uid !== null) await file.chown(uid, uid);
      await file.writeFile(content);
      // Recovery ends at the first record that is not whole.
      await file.truncate(segment_bytes);
    } finally {
      await file.close();
    }
  }
}

/** Moves the placed segments to where the server looks for them itself. Replaces the empty folder of the copy, or whatever it contains by that name. */
export function giveLog(dir: string): void {
  const target = join(instanceFiles(dir).data, "pg_wal");
  rmSync(target, { recursive: true, force: true });
  renameSync(logFolderOf(dir), target);
}

/** Settings of a server that recovers. What is kept of it is synced once it has stopped; the rest is thrown away after a crash. */
export function settingsOf(until: Date | null): Record<string, string> {
  const time = until?.toISOString().replace("T", " ").replace("Z", "+00");
  const target = time === undefined ? {} : { recovery_target_time: time, recovery_target_action: "promote" };
  return {
    ...target,
    // All segments are in pg_wal, where it looks once this has failed: a program for each segment takes longer than to apply it.
    restore_command: "false",
    recovery_target_timeline: "current",
    // It answers only once it is whole.
    hot_standby: "off",
    autovacuum: "off",
    fsync: "off",
  };
}
