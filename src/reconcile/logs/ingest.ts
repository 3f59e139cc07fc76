import { setImmediate } from "node:timers/promises";
import { createKeyedMutex } from "../../kit/keyed-mutex.ts";
import { cutLine, hideSecrets } from "../../kit/log-lines.ts";
import type { Redact } from "../../kit/redact.ts";
import { until } from "../../kit/until.ts";
import type { RuntimeLine } from "../../ports/log-store.ts";
import type { Instance } from "../../ports/runtime.ts";
import type { Platform } from "../platform.ts";
import type { IngestOutput, OutputSource } from "./output-source.ts";

type IngestPlatform = Pick<Platform, "ports" | "settings" | "clock">;

/** Creates the ingestion, once at a time per workload: the logs task and a release may request it concurrently. */
export function createIngest(platform: IngestPlatform): IngestOutput {
  const runExclusive = createKeyedMutex();
  const budgetOf = createLineBudgets(platform.settings.logLines);
  return (source) =>
    runExclusive(source.workload_id, async () => {
      for (const instance of source.instances)
        await ingestInstance(
          platform,
          source,
          instance,
          budgetOf(`${source.project_id}/${source.process}/${instance.ordinal}`),
        );
    });
}

async function ingestInstance(
  platform: IngestPlatform,
  source: OutputSource,
  instance: Instance,
  budget: LineBudget,
): Promise<void> {
  const { runtime, logStore } = platform.ports;
  const unread = await readUnread(platform, instance, budget.availableLines());
  if (unread === null) return;
  const redact = unread.lines.length === 0 ? (text: string) => text : await source.redactor();
  const at = platform.clock.now().toISOString();
  const { deployment, process } = source;
  const isStopped = stopLine.test(unread.lines.at(-1) ?? "") && (await wasTerminated(platform, instance));
  const own = isStopped ? unread.lines.slice(0, -1) : unread.lines;
  const texts = [...unread.notes, ...(await redactLines(own, redact))];
  const lines = texts.map((text): RuntimeLine => ({ at, deployment, process, replica: instance.ordinal, text }));
  await logStore.appendRuntime(source.project_id, lines, { instance, cursor: unread.cursor });
  budget.spend(unread.lines.length);
  await runtime.discardOutput(instance, unread.cursor);
}

// The last words of a shell (dash, bash) whose program SIGTERM ended. Each switch stops the replaced replicas that way, so it is no news.
const stopLine = /^(?:\S+: (?:line )?\d+: +\d+ )?Terminated\b/;
const endMs = 2000;
const sigterm = 128 + 15;

/** Returns whether SIGTERM ended the instance. Waits for its end, because its last line may be read just before. */
async function wasTerminated({ ports }: IngestPlatform, of: Instance): Promise<boolean> {
  const look = async () => {
    const all = await ports.runtime.observe();
    const isSame = (each: Instance) => each.workload_id === of.workload_id && each.ordinal === of.ordinal;
    const found = all.find((each) => isSame(each) && each.attempt === of.attempt);
    if (found === undefined) return true;
    return found.state === "exited" ? found.exit?.code === sigterm : undefined;
  };
  return (await until(look, { timeoutMs: endMs })) === true;
}

interface Unread {
  /** Notes on output that was lost before the first line. */
  readonly notes: readonly string[];
  readonly lines: readonly string[];
  readonly cursor: string;
}

// As much as a runtime keeps, so that the newest lines are included. A replica that writes faster must not delay others.
const mostChunks = 128;

/** Reads all unread output and keeps the newest lines; resolves to null if there is none. */
async function readUnread(
  { ports: { runtime, logStore } }: IngestPlatform,
  instance: Instance,
  mostLines: number,
): Promise<Unread | null> {
  const position = await logStore.readPosition(instance);
  let cursor = position;
  let lines: readonly string[] = [];
  let lostLines = 0;
  let lostBytes = 0;
  for (let read = 0; read < mostChunks; read += 1) {
    const chunk = await runtime.readOutput(instance, cursor);
    if (chunk.cursor === cursor) break;
    cursor = chunk.cursor;
    lostBytes += chunk.dropped_bytes;
    const all = lines.concat(chunk.lines);
    lines = mostLines === 0 ? [] : all.slice(-mostLines);
    lostLines += all.length - lines.length;
  }
  if (cursor === null || cursor === position) return null;
  const notes = [
    ...(lostBytes > 0 ? [`[dropped ${lostBytes} bytes: the application writes faster than logs are stored]`] : []),
    ...(lostLines > 0 ? [lostLinesText(lostLines)] : []),
  ];
  return { notes, lines, cursor };
}

function lostLinesText(lines: number): string {
  return `[dropped ${lines} ${lines === 1 ? "line" : "lines"}: the application writes more lines a second than are stored]`;
}

const turnMs = 10;

/** Returns the lines as a log stores them. Lets other work through: redacting a flood of long lines takes seconds. */
export async function redactLines(lines: readonly string[], redact: Redact): Promise<string[]> {
  const texts: string[] = [];
  let turn = performance.now();
  for (const line of lines) {
    if (performance.now() - turn > turnMs) turn = (await setImmediate(), performance.now());
    texts.push(cutLine(hideSecrets(line, redact)));
  }
  return texts;
}

/** Rate limit for one replica's log lines: a burst, then a rate per second. */
export interface LineRate {
  readonly burst: number;
  readonly perSecond: number;
}

/** How many more lines the log accepts from one replica now. */
interface LineBudget {
  availableLines(): number;
  spend(lines: number): void;
}

interface Bucket {
  lines: number;
  atMs: number;
}

const mostReplicas = 10_000;

/** Returns a function that looks up a replica's budget. Budgets outlive deployments, so that an application can't get more lines by crashing. */
function createLineBudgets({ burst, perSecond }: LineRate): (replica: string) => LineBudget {
  const buckets = new Map<string, Bucket>();
  const refill = (bucket: Bucket): Bucket => {
    const nowMs = performance.now();
    bucket.lines = Math.min(burst, bucket.lines + ((nowMs - bucket.atMs) / 1000) * perSecond);
    bucket.atMs = nowMs;
    return bucket;
  };
  return (replica) => {
    const bucket = buckets.get(replica) ?? { lines: burst, atMs: performance.now() };
    // A forgotten bucket is full again. Each use moves a bucket to the end, so that the least recently used one is dropped first.
    buckets.delete(replica);
    buckets.set(replica, bucket);
    if (buckets.size > mostReplicas) buckets.delete(buckets.keys().next().value as string);
    return {
      availableLines: () => Math.max(0, Math.floor(refill(bucket).lines)),
      spend: (lines) => void (refill(bucket).lines -= lines),
    };
  };
}
