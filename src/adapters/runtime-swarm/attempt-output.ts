import { createReadStream, existsSync, mkdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { appendFile, rename } from "node:fs/promises";
import { createInterface } from "node:readline";
import { dirname } from "node:path";
import { createKeyedMutex } from "../../kit/keyed-mutex.ts";
import type { OutputChunk } from "../../ports/runtime.ts";
import { OutputLog } from "../../containers/output-log.ts";
import { readFrames } from "../../containers/read-frames.ts";
import type { SwarmContext } from "./settings.ts";

const fileBytes = 16 * 1024 * 1024;
const finishMs = 10_000;

/**
 * Copies the output of applications on all machines to this machine while they run: a swarm deletes a task's output with its container, and
 * a lost machine takes its output along. Stores it in files like the engine's, two of 16 MiB per service.
 */
export interface AttemptOutput {
  /** Continues to copy a service's output from where it left off. */
  follow(service: string): void;
  /** Copies the output written so far, once per process. */
  catchUp(service: string): Promise<void>;
  /** Copies the remaining output of an application that has exited. */
  finish(service: string): Promise<void>;
  mark(service: string): string;
  read(service: string, cursor: string | null, isEnded: boolean): Promise<OutputChunk>;
  forget(service: string): void;
  close(): void;
}

export function createAttemptOutput(context: SwarmContext): AttemptOutput {
  const root = `${context.options.stateDir}/output`;
  const fileOf = (service: string) => `${root}/containers/${service}/${service}-json.log`;
  const followed = new Map<string, AbortController>();
  const caughtUp = new Set<string>();
  const finished = new Set<string>();
  const runExclusive = createKeyedMutex();
  const bring = (service: string, follow: boolean, signal: AbortSignal) =>
    bringOutput(context, { service, follow, file: fileOf(service) }, signal);
  const end = (service: string) => {
    followed.get(service)?.abort();
    followed.delete(service);
  };
  /** Tries for at most `finishMs`: a lost machine delivers nothing more. */
  const bringAll = (service: string, done: Set<string>) => {
    if (done.has(service)) return Promise.resolve();
    end(service);
    return runExclusive(service, async () => {
      if (done.has(service)) return;
      await bring(service, false, AbortSignal.timeout(finishMs)).catch(() => {});
      done.add(service);
    });
  };
  return {
    follow(service) {
      if (followed.has(service) || finished.has(service)) return;
      const ending = new AbortController();
      followed.set(service, ending);
      const over = () => void (followed.get(service) === ending && followed.delete(service));
      // When the stream ends, the next poll of the swarm follows it again.
      runExclusive(service, () => bring(service, true, ending.signal)).then(over, over);
    },
    catchUp: (service) => bringAll(service, caughtUp),
    finish: (service) => bringAll(service, finished),
    mark: (service) => new OutputLog(root, service).mark(),
    read: (service, cursor, isEnded) => new OutputLog(root, service).read(cursor, isEnded),
    forget(service) {
      end(service);
      for (const done of [caughtUp, finished]) done.delete(service);
      rmSync(dirname(fileOf(service)), { recursive: true, force: true });
    },
    close() {
      for (const service of [...followed.keys()]) end(service);
    },
  };
}

interface Source {
  readonly service: string;
  readonly follow: boolean;
  readonly file: string;
}

async function bringOutput(
  { managers }: SwarmContext,
  { service, follow, file }: Source,
  signal: AbortSignal,
): Promise<void> {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const last = await lastRecord(file);
  const answer = await managers.stream({
    path: `/services/${service}/logs`,
    query: { stdout: true, stderr: true, timestamps: true, follow, since: secondsOf(last?.time) },
    ...{ signal, timeoutMs: 0 },
  });
  answer.socket.unref();
  const records = new RecordFile(file, last);
  try {
    await readFrames(answer, (chunk) => records.add(chunk));
  } finally {
    await records.flushed();
  }
}

interface LastRecord {
  /** RFC 3339 with nanoseconds, as the engine wrote it. */
  readonly time: string;
  /** How many records have exactly this time. */
  readonly count: number;
}

/** Finds the last stored record, after which copying continues. */
async function lastRecord(file: string): Promise<LastRecord | undefined> {
  for (const path of [file, `${file}.1`]) {
    if (!existsSync(path)) continue;
    let last: LastRecord | undefined;
    for await (const line of createInterface({ input: createReadStream(path) })) {
      const time = timeOf(line);
      if (time !== undefined) last = { time, count: last?.time === time ? last.count + 1 : 1 };
    }
    if (last !== undefined) return last;
  }
  return undefined;
}

const isTime = (text: string): boolean => /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text);

function timeOf(line: string): string | undefined {
  try {
    const { time } = JSON.parse(line) as { readonly time: string };
    return isTime(time) ? time : undefined;
  } catch {
    return undefined;
  }
}

/** Converts a time to seconds since 1970 with a fraction, as the API expects it. */
function secondsOf(time: string | undefined): string | undefined {
  if (time === undefined) return undefined;
  const [, fraction = "0"] = /\.(\d+)Z$/.exec(time) ?? [];
  return `${Math.floor(Date.parse(time) / 1000)}.${fraction.padEnd(9, "0")}`;
}

/** Appends records newer than the last stored one; renames a file that reaches its limit to `.1`. */
class RecordFile {
  readonly #file: string;
  readonly #last: LastRecord | undefined;
  #skipped = 0;
  #pending: string[] = [];
  #prefix = "";
  #writing: Promise<void> = Promise.resolve();
  #size: number;

  constructor(file: string, last: LastRecord | undefined) {
    this.#file = file;
    this.#last = last;
    this.#size = existsSync(file) ? statSync(file).size : 0;
    // A crash may have left an incomplete record.
    if (this.#size > 0 && !readFileSync(file).subarray(-1).equals(Buffer.from("\n"))) this.#prefix = "\n";
  }

  /** Adds a frame: a time, a space and the output. */
  add(frame: Buffer): void {
    const space = frame.indexOf(32);
    const time = frame.subarray(0, space).toString("latin1");
    // A frame without a time is the engine's own message, such as that a machine sends no output any more.
    if (!isTime(time) || this.#isKnown(time)) return;
    const log = frame.subarray(space + 1).toString("utf8");
    this.#pending.push(`${JSON.stringify({ log, time })}\n`);
    if (this.#pending.length === 1) this.#writing = this.#writing.then(() => this.#write());
  }

  flushed(): Promise<void> {
    return this.#writing;
  }

  #isKnown(time: string): boolean {
    if (this.#last === undefined || time > this.#last.time) return false;
    if (time < this.#last.time) return true;
    return (this.#skipped += 1) <= this.#last.count;
  }

  async #write(): Promise<void> {
    const text = this.#prefix + this.#pending.splice(0).join("");
    this.#prefix = "";
    if (this.#size > 0 && this.#size + text.length > fileBytes) {
      await rename(this.#file, `${this.#file}.1`);
      this.#size = 0;
    }
    await appendFile(this.#file, text, { mode: 0o600 });
    this.#size += Buffer.byteLength(text);
  }
}
