import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { until } from "../../kit/until.ts";
import { endOverFull } from "./changed-folders.ts";
import { InstanceFolders } from "./instance-folders.ts";
import type { ProcessRuntime } from "./process-runtime.ts";
import { testParts } from "../../../test/support/sandbox-parts.ts";
import { makeGround, type TestGround } from "../../../test/support/runtime-ground.ts";
import { guardMs } from "../../../test/support/eventually.ts";

const mib = 1024 * 1024;
const server = `require("fs").writeFileSync("written", Buffer.alloc(20 * ${mib}, 1));
require("http").createServer((q, r) => r.end()).listen(process.env.PORT);`;
const levels = { "with namespaces": testParts(), "without namespaces": { ...testParts(), bwrap: null } };

for (const [level, parts] of Object.entries(levels))
  describe(`what an application writes to its own folder, ${level}`, () => {
    let ground: TestGround;
    let runtime: ProcessRuntime;
    const project_id = `prj_${level.replaceAll(" ", "_")}`;
    const running = async () => (await runtime.observe()).filter(({ state }) => state === "running").length;

    before(async () => {
      ground = await makeGround({ parts, layerBytes: 64 * mib });
      runtime = await ground.open();
      await start(await ground.makeImage(project_id, { "server.js": server }, "node server.js"));
    });
    after(() => ground.close());

    const start = (image_ref: string) =>
      runtime.start(
        {
          ...{
            id: `dep_${project_id}`,
            project_id,
            project_number: 1,
            process: "web",
            image_ref,
            port: 3000,
            env: {},
            reach: [],
          },
          ...{ storage_access: "open", limits: { memoryBytes: 256 * mib, processes: 64, cpus: 1 } },
        },
        { ordinal: 0, attempt: 1 },
      );

    it("counts on the disk while the replica runs", async (t) => {
      if (!ground.sandbox.describe().isolation.includes("private_app_folder")) return t.skip("no private folder here");
      const counts = async () => ((await runtime.changedBytes(project_id)) >= 20 * mib ? true : undefined);
      assert.ok(await until(counts, { timeoutMs: guardMs }));
      assert.ok((await runtime.changedBytes(project_id)) < 40 * mib);
      assert.equal(await runtime.changedBytes("prj_other"), 0);
    });

    it("ends the replica beyond its limit where no file system has one", async () => {
      const folders = new InstanceFolders(`${ground.root}/private/data/runtime`).all();
      await endOverFull(ground.sandbox, folders);
      assert.equal(await running(), 1, "within its limit");
      const isOver = async () => ({ bytes: 65 * mib, isOver: true });
      await endOverFull({ ...ground.sandbox, changes: isOver }, folders);
      const expected = level === "with namespaces" ? 1 : 0;
      assert.ok(await until(async () => ((await running()) === expected ? true : undefined), { timeoutMs: guardMs }));
      const { lines } = await runtime.readOutput({ workload_id: `dep_${project_id}`, ordinal: 0, attempt: 1 }, null);
      assert.equal(
        lines.some((line) => line.includes("wrote more to its own folder")),
        expected === 0,
      );
    });
  });
