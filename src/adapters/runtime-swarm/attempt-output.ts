import { createReadStream, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
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
 * What applications on all machines write, brought to this one while they run: a swarm forgets a task's output with its container, and a
 * machine that is lost takes it along. Kept in files like the engine's own, two of 16 MiB for each service.
 */
export interface AttemptOutput {
  /** Goes on bringing a service's output, from where it was left. */
  follow(service: string): void;
  /** Brings what was written before, once in the life of this process. */
  catchUp(service: string): Promise<void>;
  /** Brings what is left of an application that has ended. */
  finish(service: string): Promise<void>;
  mark(service: string): string;
  read(service: string, cursor: string | null, isEnded: boolean): Promise<OutputChunk>;
  forget(service: string): void;
  /** Forgets all services but these. */
  keepOnly(services: ReadonlySet<string>): void;
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
  /** A machine that is lost gives nothing more. */
  const bringAll = (service: string, done: Set<string>) => {
    if (done.has(service)) return Promise.resolve();
    end(service);
    return runExclusive(service, async () => {
      if (done.has(service)) return;
      await bring(service, false, AbortSignal.timeout(finishMs)).catch(() => {});
      done.add(service);
    });
  };
  const forget = (service: string) => {
    end(service);
    for (const done of [caughtUp, finished]) done.delete(service);
    rmSync(dirname(fileOf(service)), { recursive: true, force: true });
  };
  return {
    follow(service) {
      if (followed.has(service) || finished.has(service)) return;
      const ending = new AbortController();
      followed.set(service, ending);
      const over = () => void (followed.get(service) === ending && followed.delete(service));
      // The next look at the swarm follows again.
      runExclusive(service, () => bring(service, true, ending.signal)).then(over, over);
    },
    catchUp: (service) => bringAll(service, caughtUp),
    finish: (service) => bringAll(service, finished),
    mark: (service) => new OutputLog(root, service).mark(),
    read: (service, cursor, isEnded) => new OutputLog(root, service).read(cursor, isEnded),
    forget,
    keepOnly(services) {
      if (!existsSync(`${root}/containers`)) return;
      for (const name of readdirSync(`${root}/containers`)) if (!services.has(name)) forget(name);
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
  { api }: SwarmContext,
  { service, follow, file }: Source,
  signal: AbortSignal,
): Promise<void> {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const last = await lastRecord(file);
  const answer = await api.stream({
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
  /** As the engine wrote it: RFC 3339 with nanoseconds. */
  readonly time: string;
  /** How many records have exactly this time. */
  readonly count: number;
}

/** Where an earlier process left off. */
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

function timeOf(line: string): string | undefined {
  try {
    return (JSON.parse(line) as { time: string }).time;
  } catch {
    return undefined;
  }
}

/** The API takes seconds since 1970 with a fraction. */
function secondsOf(time: string | undefined): string | undefined {
  if (time === undefined) return undefined;
  const [, fraction = "0"] = /\.(\d+)Z$/.exec(time) ?? [];
  return `${Math.floor(Date.parse(time) / 1000)}.${fraction.padEnd(9, "0")}`;
}

/** Appends what is newer than the last record; a file beyond its size becomes `.1`. */
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
    // A crash may have left half a record.
    if (this.#size > 0 && !readFileSync(file).subarray(-1).equals(Buffer.from("\n"))) this.#prefix = "\n";
  }

  /** A frame is a time, a space and what was written. */
  add(frame: Buffer): void {
    const space = frame.indexOf(32);
    const time = frame.subarray(0, space).toString("latin1");
    if (this.#isKnown(time)) return;
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
