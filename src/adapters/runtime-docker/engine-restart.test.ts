import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { withoutDocker } from "../../../test/support/docker-engine.ts";
import { until } from "../../kit/until.ts";
import type { Workload } from "../../ports/runtime.ts";
import { makeContainers, type TestContainers } from "../../../test/support/containers.ts";
import { guardMs } from "../../../test/support/eventually.ts";

const waitMs = guardMs;
const server = `require("node:http").createServer((q, r) => q.url === "/crash" ? process.exit(42) : r.end("here")).listen(Number(process.env.PORT));`;

describe("an engine with live-restore", { skip: withoutDocker }, () => {
  let fixture: TestContainers;
  before(async () => (fixture = await makeContainers()));
  after(() => fixture.close());

  it("loses no request while it restarts and after it was killed, and its ends are seen again afterwards", async () => {
    const project = { project_id: "prj_restart", project_number: 921 };
    const image_ref = await fixture.makeImage(project.project_id, { "server.js": server }, "node server.js");
    const limits = { memoryBytes: 128 * 1024 * 1024, processes: 48, cpus: 1 };
    const workload: Workload = {
      ...{ id: "dep_restart", ...project, process: "web", image_ref, port: 3000, env: {}, limits, reach: [] },
      storage_access: "open",
    };
    const { runtime, engine } = fixture;
    const { address } = await runtime.start(workload, { ordinal: 0, attempt: 1 });
    const ask = (path = "/") => fetch(`http://${address?.host}:${address?.port}${path}`).then((found) => found.text());
    assert.equal(await until(() => ask().catch(() => undefined), { timeoutMs: waitMs }), "here");
    const before = await runtime.observe();
    const counts = { answered: 0, failed: 0 };
    const stop = new AbortController();
    const load = (async () => {
      while (!stop.signal.aborted)
        await ask().then(
          () => (counts.answered += 1),
          () => (counts.failed += 1),
        );
    })();
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      await engine.end(signal);
      const { missing } = await runtime.describe();
      assert.deepEqual(
        missing.map(({ part }) => part),
        ["engine"],
      );
      await assert.rejects(runtime.observe());
      await engine.begin();
      assert.deepEqual(await runtime.observe(), before);
    }
    stop.abort();
    await load;
    assert.equal(counts.failed, 0);
    assert.ok(counts.answered > 0);
    const told: string[] = [];
    runtime.onChange((id) => told.push(id));
    const listed = () => runtime.observe().then(([instance]) => (instance?.state === "exited" ? instance : undefined));
    await ask("/crash").catch(() => {});
    assert.equal((await until(listed, { timeoutMs: waitMs }))?.exit?.code, 42);
    assert.ok(await until(() => told.includes(workload.id) || undefined, { timeoutMs: waitMs }));
  });
});
