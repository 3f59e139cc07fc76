import assert from "node:assert/strict";
import { before, mock, test } from "node:test";
import { createDiskLogStore } from "../src/adapters/log-store-disk/disk-log-store.ts";
import { newId } from "../src/kit/ids.ts";
import { readLineBytes } from "../src/kit/log-lines.ts";
import { redactor } from "../src/kit/redact.ts";
import type { LogStore } from "../src/ports/log-store.ts";
import type { Runtime } from "../src/ports/runtime.ts";
import { createIngest, type LineRate } from "../src/reconcile/logs/ingest.ts";
import { platformDouble } from "./support/platform-double.ts";
import { instanceDouble, runtimeDouble } from "./support/port-doubles.ts";
import { testFolder } from "./support/test-folder.ts";

const folder = testFolder("ingest");
let logStore: LogStore;
/** The clock of the log rate limits; only tests advance it. */
let nowMs = 1000;

before(async () => {
  mock.method(performance, "now", () => nowMs);
  logStore = createDiskLogStore({ dir: folder });
});

/** An application with these output lines; the runtime returns them in chunks of a hundred. */
function application(lines: readonly string[], state: "running" | "exited", logLines: LineRate) {
  const workload_id = newId("dep");
  const readOutput: Runtime["readOutput"] = async (_, cursor) => {
    const from = Number(cursor ?? 0);
    const chunk = lines.slice(from, from + 100);
    return { lines: chunk, cursor: String(from + chunk.length), dropped_bytes: 0 };
  };
  const runtime = runtimeDouble({ readOutput });
  const platform = platformDouble({ ports: { runtime, logStore }, settings: { logLines } });
  const ingestOutput = createIngest(platform);
  const source = {
    workload_id,
    project_id: newId("prj"),
    deployment: 3,
    process: "web",
    instances: [instanceDouble({ workload_id, state })],
    redactor: async () => redactor(["hunter2-hunter2"]),
  };
  const read = async () =>
    (await logStore.readRuntime(source.project_id, { limit: 5000 })).lines.map(({ text }) => text);
  return { ingest: () => ingestOutput(source), read };
}

const numbered = (count: number) => Array.from({ length: count }, (_, index) => `line ${index}`);

for (const state of ["exited", "running"] as const)
  test(`the log of a ${state} application keeps the newest lines of a burst beyond the limit, after a line with the number of dropped lines`, async () => {
    const app = application(numbered(95), state, { burst: 20, perSecond: 1 });
    await app.ingest();
    const [first, ...kept] = await app.read();
    assert.match(first ?? "", /^\[dropped 75 lines:/);
    assert.deepEqual(kept, numbered(95).slice(-20));
    await app.ingest();
    assert.equal((await app.read()).length, 21);
  });

test("the log keeps a burst within the limit completely, and afterwards the allowed number of lines a second", async () => {
  const lines = numbered(6000);
  const app = application(lines, "running", { burst: 6000, perSecond: 20 });
  await app.ingest();
  assert.deepEqual(await app.read(), lines.slice(-5000));
  nowMs += 500;
  lines.push(...numbered(1000));
  await app.ingest();
  const kept = (await app.read()).slice(4000).filter((line) => line === "line 999");
  const added = (await app.read()).findLast((line) => line.startsWith("[dropped"));
  assert.equal(kept.length, 1);
  assert.match(added ?? "", /^\[dropped 990 lines:/);
});

test("no part of a secret remains when the cut of a long line falls into it", async () => {
  const secret = "hunter2-hunter2";
  const across = `${"x".repeat(9980)}${secret}${" and more".repeat(9)}`;
  // Redacted secrets are shorter, so the text before the cut can contain the beginning of a secret that was read incompletely.
  const shrunk = `${secret.repeat(9000)}`.slice(0, readLineBytes);
  const app = application([across, shrunk], "running", { burst: 5, perSecond: 5 });
  await app.ingest();
  const lines = await app.read();
  assert.ok(lines.every((line) => !line.includes("hunt")));
  assert.match((lines[0] ?? "").slice(-40), /x\[redacted\].* … \[cut\]$/);
});

test("lines within the limit are all kept, with secrets redacted", async () => {
  const app = application(["one", "the password is hunter2-hunter2", "three"], "running", { burst: 5, perSecond: 5 });
  await app.ingest();
  assert.deepEqual(await app.read(), ["one", "the password is [redacted]", "three"]);
});
