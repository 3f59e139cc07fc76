import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createDiskLogStore } from "../src/adapters/log-store-disk/disk-log-store.ts";
import { newId } from "../src/kit/ids.ts";
import { redactor } from "../src/kit/redact.ts";
import { systemClock } from "../src/ports/clock.ts";
import type { LogStore } from "../src/ports/log-store.ts";
import type { Platform } from "../src/reconcile/platform.ts";
import { createIngest } from "../src/reconcile/logs/ingest.ts";

let folder: string;
let logStore: LogStore;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "berth-ingest-"));
  logStore = createDiskLogStore({ dir: folder });
});
after(() => rm(folder, { recursive: true, force: true }));

/** An application that has written these lines, which come in chunks of ten. */
function application(lines: readonly string[], state: "running" | "exited", linesPerSecond: number) {
  const workload_id = newId("dep");
  const observe = async () => [{ workload_id, ordinal: 0, attempt: 1, state }];
  const readOutput = async (_: unknown, cursor: string | null) => {
    const from = Number(cursor ?? 0);
    const chunk = lines.slice(from, from + 10);
    return { lines: chunk, cursor: String(from + chunk.length), dropped_bytes: 0 };
  };
  const runtime = { observe, readOutput, discardOutput: async () => {} };
  const settings = { logLinesPerSecond: linesPerSecond };
  const platform = { clock: systemClock, ports: { runtime, logStore }, settings } as unknown as Platform;
  const ingestOutput = createIngest(platform);
  const source = {
    workload_id,
    project_id: newId("prj"),
    deployment: 3,
    redactor: async () => redactor(["hunter2-hunter2"]),
  };
  const read = async () =>
    (await logStore.readRuntime(source.project_id, { limit: 5000 })).lines.map(({ text }) => text);
  return { ingest: () => ingestOutput(source), read };
}

test("lines beyond the limit of a second are dropped and counted once", async () => {
  const lines = Array.from({ length: 95 }, (_, index) => `line ${index}`);
  const app = application(lines, "exited", 20);
  await app.ingest();
  const kept = await app.read();
  assert.deepEqual(kept.slice(0, 20), lines.slice(0, 20));
  assert.equal(kept.length, 21);
  assert.match(kept[20] ?? "", /^\[dropped 75 lines:/);
  await app.ingest();
  assert.equal((await app.read()).length, 21);
});

test("while an application runs, the number comes once its second is over", async () => {
  const app = application(
    Array.from({ length: 30 }, (_, index) => `line ${index}`),
    "running",
    5,
  );
  await app.ingest();
  assert.equal((await app.read()).length, 5);
  await new Promise((resolve) => setTimeout(resolve, 1050));
  await app.ingest();
  assert.match((await app.read())[5] ?? "", /^\[dropped 25 lines:/);
});

test("what is within the limit is all kept, without secrets", async () => {
  const app = application(["one", "the password is hunter2-hunter2", "three"], "running", 5);
  await app.ingest();
  assert.deepEqual(await app.read(), ["one", "the password is [redacted]", "three"]);
});
