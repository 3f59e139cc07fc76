import assert from "node:assert/strict";
import { appendFileSync, readdirSync, statSync, truncateSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { startNode } from "../../../test/support/node-process.ts";
import { newId } from "../../kit/ids.ts";
import { logStoreSuite } from "../../ports/log-store.suite.ts";
import { seededRandom } from "../../../test/support/seeded-random.ts";
import { testFolder } from "../../../test/support/test-folder.ts";
import { createDiskLogStore } from "./disk-log-store.ts";

const random = seededRandom();
const root = testFolder("logs");
const kept = { segmentBytes: 20_000, segments: 3 };
const limits = { buildLimitBytes: 20_000, runtime: kept, requests: kept };

describe("logs on disk", () => {
  const dir = join(root, "suite");
  logStoreSuite(async () => ({
    store: createDiskLogStore({ dir, ...limits }),
    reopen: async () => createDiskLogStore({ dir, ...limits }),
    buildLimitBytes: limits.buildLimitBytes,
    moreThanKeptBytes: 100_000,
  }));
});

describe("logs on disk after a crash", () => {
  const dir = join(root, "crash");
  const store = createDiskLogStore({ dir });
  const line = (text: string) => ({ at: "2026-01-02T03:04:05.678Z", deployment: 1, process: "web", replica: 0, text });
  const instanceOf = (workload_id: string) => ({ workload_id, ordinal: 0, attempt: 1 });
  const newestFile = (project: string) => {
    const folder = join(dir, "runtime", project);
    return join(folder, readdirSync(folder).toSorted().at(-1) as string);
  };
  const texts = async (project: string) =>
    (await store.readRuntime(project, { limit: 100 })).lines.map(({ text }) => text);

  it("are closed to other users", async () => {
    const project = newId("prj");
    await store.appendRuntime(project, [line("a")]);
    assert.equal(statSync(newestFile(project)).mode & 0o077, 0);
    assert.equal(statSync(join(dir, "runtime")).mode & 0o077, 0);
  });

  it("do not show half a line, and the next line stands by itself", async () => {
    const [project, build] = [newId("prj"), newId("bld")];
    await store.appendRuntime(project, [line("whole")]);
    await store.appendBuild(build, ["whole"]);
    appendFileSync(newestFile(project), '{"at":"2026');
    appendFileSync(join(dir, "builds", `${build}.log`), "hal");
    assert.deepEqual(await texts(project), ["whole"]);
    assert.deepEqual(await store.readBuild(build, 0, 100), { text: "whole\n", next_offset: 6 });
    await store.appendRuntime(project, [line("next")]);
    await store.appendBuild(build, ["next"]);
    assert.deepEqual(await texts(project), ["whole", "next"]);
    assert.equal((await store.readBuild(build, 0, 100)).text, "whole\nnext\n");
  });

  it("have a time for each second in which a build's lines were appended", async () => {
    const build = newId("bld");
    const file = join(dir, "builds", `${build}.times`);
    await store.appendBuild(build, ["one"]);
    await store.appendBuild(build, ["two"]);
    const past = new Date(Date.now() - 60_000);
    utimesSync(file, past, past);
    await store.appendBuild(build, ["three"]);
    assert.equal(statSync(file).mode & 0o077, 0);
    appendFileSync(file, "14 2026-0");
    const offsets = (await store.readBuildTimes(build)).map(({ offset }) => offset);
    // If the machine stalls for a second between the first two appends, each of them gets a time.
    assert.deepEqual(
      offsets.filter((offset) => offset !== 4),
      [0, 8],
    );
  });

  it("neither repeat nor lose lines when the lines of a position were stored in part", async () => {
    const [project, instance] = [newId("prj"), instanceOf(newId("dep"))];
    await store.appendRuntime(project, [line("one")], { instance, cursor: "1" });
    const before = statSync(newestFile(project)).size;
    await store.appendRuntime(project, [line("two"), line("three")], { instance, cursor: "3" });
    const whole = statSync(newestFile(project)).size;
    for (const kept of [before, before + 5, whole - 10]) {
      truncateSync(newestFile(project), kept);
      assert.equal(await store.readPosition(instance), "1");
      await store.appendRuntime(project, [line("two"), line("three")], { instance, cursor: "3" });
      assert.equal(await store.readPosition(instance), "3");
      assert.deepEqual(await texts(project), ["one", "two", "three"]);
    }
  });

  it("go on when a power cut has emptied a position", async () => {
    const [project, instance] = [newId("prj"), instanceOf(newId("dep"))];
    await store.appendRuntime(project, [line("one")], { instance, cursor: "1" });
    truncateSync(join(dir, "positions", instance.workload_id, "0.json"));
    assert.equal(await store.readPosition(instance), null);
    await store.appendRuntime(project, [line("two")], { instance, cursor: "2" });
    assert.equal(await store.readPosition(instance), "2");
    assert.deepEqual(await texts(project), ["one", "two"]);
  });

  it("agree with their position wherever the writer is killed", async () => {
    const project = newId("prj");
    const killed = instanceOf(newId("dep"));
    const module = new URL("./disk-log-store.ts", import.meta.url).href;
    const script = `
      const { createDiskLogStore } = await import(${JSON.stringify(module)});
      const store = createDiskLogStore({ dir: ${JSON.stringify(dir)} });
      for (let n = Number((await store.readPosition(${JSON.stringify(killed)})) ?? 0); ; n += 20) {
        const lines = Array.from({ length: 20 }, (_, i) => ({ at: "2026-01-02T03:04:05.678Z", deployment: 1, process: "web", replica: 0, text: String(n + i) }));
        await store.appendRuntime(${JSON.stringify(project)}, lines, { instance: ${JSON.stringify(killed)}, cursor: String(n + 20) });
        if (n % 100 === 0) console.log(n);
      }`;
    for (let round = 0; round < 6; round += 1) {
      const child = startNode(["--input-type=module", "--eval", script]);
      await new Promise((resolve) => child.stdout.once("data", resolve));
      await new Promise((resolve) => setTimeout(resolve, random() * 60));
      child.kill("SIGKILL");
      await new Promise((resolve) => child.once("close", resolve));
    }
    const stored = Number(await store.readPosition(killed));
    await store.appendRuntime(project, [line(String(stored))], { instance: killed, cursor: String(stored + 1) });
    const page = await store.readRuntime(project, { limit: 1_000_000 });
    assert.deepEqual(
      page.lines.map(({ text }) => Number(text)),
      Array.from({ length: stored + 1 }, (_, n) => n),
    );
  });

  it("refuse a name that is not an id", async () => {
    await assert.rejects(store.appendRuntime("../../etc", [line("x")]));
    await assert.rejects(store.readBuild("../../etc/passwd", 0, 10));
  });
});
