import { appendFile as append, mkdir, open, readFile, rm, stat, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { createHash } from "node:crypto";
import { createKeyedMutex } from "../../kit/keyed-mutex.ts";
import { parseJson } from "../../kit/parse-json.ts";
import type { BuildTime, LogStore, StoredRequest, IngestPosition } from "../../ports/log-store.ts";
import { appendFile, endOfLines, readRange } from "./append-file.ts";
import * as runtimeLog from "./runtime-log.ts";
import { replaceFileAsync } from "../../kit/whole-file.ts";
import type { InstanceKey } from "../../ports/runtime.ts";
import { readBatch, type StoredBatch } from "./runtime-log.ts";

export interface DiskLogStoreOptions {
  /** Created with access for its owner only if it does not exist. */
  readonly dir: string;
  /** Size limit of a build's log. Default 64 MiB. */
  readonly buildLimitBytes?: number;
  /** How much runtime output to keep for each project. Default five files of 8 MiB. */
  readonly runtime?: runtimeLog.RuntimeLimits;
  /** How much of the log of requests to keep for each project. Default five files of 4 MiB, about 100,000 requests. */
  readonly requests?: runtimeLog.RuntimeLimits;
}

const usualBuildLimitBytes = 64 * 1024 * 1024;
const usualRuntimeLimits = { segmentBytes: 8 * 1024 * 1024, segments: 5 };
const usualRequestLimits = { segmentBytes: 4 * 1024 * 1024, segments: 5 };

/** Stores logs as files: text and times for each build, numbered files of JSON lines for each project. Only one process may write at a time. */
export function createDiskLogStore(options: DiskLogStoreOptions): LogStore {
  const buildLimitBytes = options.buildLimitBytes ?? usualBuildLimitBytes;
  const limits = options.runtime ?? usualRuntimeLimits;
  const requestLimits = options.requests ?? usualRequestLimits;
  const builds = join(options.dir, "builds");
  const positions = join(options.dir, "positions");
  const positionsDir = (workloadId: string) => join(positions, safe(workloadId));
  const logDir = (projectId: string) => join(options.dir, "runtime", safe(projectId));
  const requestDir = (projectId: string) => join(options.dir, "requests", safe(projectId));
  const buildFile = (buildId: string) => join(builds, `${safe(buildId)}.log`);
  const timesFile = (buildId: string) => join(builds, `${safe(buildId)}.times`);
  const removeBuilds = async (ids: readonly string[]) => {
    for (const id of ids) for (const file of [buildFile(id), timesFile(id)]) await rm(file, { force: true });
  };
  const runExclusive = createKeyedMutex();

  return {
    appendBuild: (buildId, lines) =>
      runExclusive(buildId, async () => {
        if (lines.length === 0) return;
        await mkdir(builds, { recursive: true, mode: 0o700 });
        const offset = await appendBuildLog(buildFile(buildId), lines, buildLimitBytes);
        await appendBuildTime(timesFile(buildId), offset);
      }),
    readBuild: async (buildId, offset, maxBytes) => readBuildLog(buildFile(buildId), offset, maxBytes),
    readBuildTimes: async (buildId) => readBuildTimes(timesFile(buildId)),
    appendRuntime: (projectId, lines, position) =>
      runExclusive(projectId, async () => {
        const dir = logDir(projectId);
        const batch = runtimeLog.encodeLines(lines);
        if (position === undefined) return runtimeLog.appendBatch(dir, batch, limits, async () => {});
        const workloadDir = positionsDir(position.instance.workload_id);
        const { cursor: before, interrupted } = await readPositionState(workloadDir, position.instance, logDir);
        if (interrupted) await runtimeLog.dropPart(dir, interrupted, interrupted.length);
        return runtimeLog.appendBatch(dir, batch, limits, (at) =>
          intendPosition(workloadDir, projectId, position, { at, batch, before }),
        );
      }),
    readRuntime: async (projectId, query) => runtimeLog.readPage(logDir(projectId), query),
    visitRuntime: async (projectId, query, visit) => runtimeLog.visitRuntime(logDir(projectId), query, visit),
    readPosition: async (instance) =>
      (await readPositionState(positionsDir(instance.workload_id), instance, logDir)).cursor,
    appendRequests: (projectId, requests) =>
      runExclusive(`requests ${projectId}`, async () => {
        await runtimeLog.appendBatch(requestDir(projectId), encodeRequests(requests), requestLimits, async () => {});
      }),
    visitRequests: (projectId, range, visit) =>
      runtimeLog.visitLines(requestDir(projectId), range, (line) => {
        const request = parseJson<StoredRequest>(line);
        return request === undefined || visit(request);
      }),
    remove: async (projectId, buildIds) => {
      await runExclusive(projectId, () => rm(logDir(projectId), { recursive: true, force: true }));
      await runExclusive(`requests ${projectId}`, () => rm(requestDir(projectId), { recursive: true, force: true }));
      await removeBuilds(buildIds);
    },
    removeBuilds,
    forgetPositions: (workloadId) => rm(positionsDir(workloadId), { recursive: true, force: true }),
  };
}

/** Writes the time first, where readers look for it. */
function encodeRequests(requests: readonly StoredRequest[]): Buffer {
  return Buffer.from(requests.map(({ at, ...rest }) => `${JSON.stringify({ at, ...rest })}\n`).join(""));
}

/** Returns an id, or a workload's id with its process type, if it is safe as a file name; throws otherwise. */
function safe(id: string): string {
  if (!/^[a-z]{3}_[0-9a-z]{1,40}(?:\.[A-Za-z0-9_-]{1,32})?$/.test(id)) throw new Error(`not an id: ${id}`);
  return id;
}

// A log may get thousands of appends a second, and readers need no more than the second.
const leastMs = 1000;

/** Stores that the lines from this offset on are written now, unless the newest time is less than a second old. */
async function appendBuildTime(path: string, offset: number): Promise<void> {
  const now = Date.now();
  const written = await stat(path).catch(() => undefined);
  if (written !== undefined && now - written.mtimeMs < leastMs) return;
  await append(path, `${offset} ${new Date(now).toISOString()}\n`, { mode: 0o600 }).catch(() => {});
}

/** Reads the times of a log; empty if it has none. A line that a crash cut off is left out. */
async function readBuildTimes(path: string): Promise<BuildTime[]> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw error;
  });
  return [...text.matchAll(/^(\d+) (\S+Z)$/gm)].map(([, offset, at = ""]) => ({ offset: Number(offset), at }));
}

const lineFeed = 0x0a;

/** Appends lines to a build's log and resolves with their offset. Truncates the log at `limitBytes` and marks the truncation with a last line. */
async function appendBuildLog(path: string, lines: readonly string[], limitBytes: number): Promise<number> {
  const mark = Buffer.from(` !     The log is longer than ${sizeInWords(limitBytes)}: the rest is cut off.\n`);
  return appendFile(path, async (size, file) => {
    if (size >= mark.length && (await readRange(file, size - mark.length, size)).equals(mark)) return Buffer.alloc(0);
    const whole = Buffer.from(lines.map((line) => `${line}\n`).join(""));
    const room = limitBytes - mark.length - size;
    if (whole.length <= room) return whole;
    return Buffer.concat([whole.subarray(0, whole.subarray(0, Math.max(0, room)).lastIndexOf(lineFeed) + 1), mark]);
  });
}

/** Reads complete lines from `offset` on, `maxBytes` at most. A single line that is longer is returned alone, so that every read makes progress. */
async function readBuildLog(
  path: string,
  offset: number,
  maxBytes: number,
): Promise<{ text: string; next_offset: number }> {
  const file = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (file === undefined) return { text: "", next_offset: offset };
  try {
    const end = await endOfLines(file);
    const bytes = await wholeLines(file, { from: offset, end, maxBytes });
    return { text: bytes.toString("utf8"), next_offset: offset + bytes.length };
  } finally {
    await file.close();
  }
}

async function wholeLines(file: FileHandle, range: { from: number; end: number; maxBytes: number }): Promise<Buffer> {
  const { from, end } = range;
  for (let size = Math.max(1, range.maxBytes); from < end; size *= 2) {
    const bytes = await readRange(file, from, Math.min(end, from + size));
    // The first read may hold many lines; a larger one is needed only for a line longer than `maxBytes`, so return that line alone.
    const lastEnd = size > range.maxBytes ? bytes.indexOf(lineFeed) : bytes.lastIndexOf(lineFeed);
    if (lastEnd >= 0) return bytes.subarray(0, lastEnd + 1);
    if (bytes.length < size) break;
  }
  return Buffer.alloc(0);
}

function sizeInWords(bytes: number): string {
  const mebibytes = bytes / (1024 * 1024);
  return Number.isInteger(mebibytes) ? `${mebibytes} MiB` : `${bytes} bytes`;
}

/**
 * A position as stored on disk, written before its lines. It is valid once exactly these bytes are in the project's log; until then,
 * `before` is valid, so lines and position commit together although they are in two files. Each ordinal of a workload has one such file,
 * which the next attempt overwrites.
 */
interface Intention {
  readonly attempt: number;
  readonly project_id: string;
  readonly before: string | null;
  readonly cursor: string;
  readonly batch: StoredBatch & { readonly length: number; readonly sha256: string };
}

/** How far an instance's output has been stored, and the batch that a crash left incomplete. */
interface PositionState {
  readonly cursor: string | null;
  readonly interrupted?: StoredBatch & { readonly length: number };
}

/** Records in the workload's folder that `batch` is about to be stored at `at`, together with the instance's new position. */
async function intendPosition(
  dir: string,
  projectId: string,
  position: IngestPosition,
  stored: { at: StoredBatch; batch: Buffer; before: string | null },
): Promise<void> {
  const { at, batch, before } = stored;
  const { instance, cursor } = position;
  const intention: Intention = {
    attempt: instance.attempt,
    project_id: projectId,
    before,
    cursor,
    batch: { ...at, length: batch.length, sha256: digest(batch) },
  };
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await replaceFileAsync(positionFile(dir, instance), JSON.stringify(intention));
}

/** Reads the valid position; its cursor is null when nothing of the instance has been stored. `logDir` returns a project's log folder. */
async function readPositionState(
  dir: string,
  instance: InstanceKey,
  logDir: (projectId: string) => string,
): Promise<PositionState> {
  const intention = await readIntention(positionFile(dir, instance));
  if (intention?.attempt !== instance.attempt) return { cursor: null };
  const { batch, before, cursor } = intention;
  const stored = await readBatch(logDir(intention.project_id), batch, batch.length);
  // If rotation has deleted the file, the file was full, so it contained the complete batch.
  if (stored === undefined || digest(stored) === batch.sha256) return { cursor };
  return { cursor: before, interrupted: batch };
}

async function readIntention(path: string): Promise<Intention | undefined> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as Intention;
  } catch {
    // A power failure emptied the file. The runtime has lost the output stored so far, so hardly a line is stored twice.
    return undefined;
  }
}

const positionFile = (dir: string, instance: InstanceKey): string => join(dir, `${instance.ordinal}.json`);

function digest(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
