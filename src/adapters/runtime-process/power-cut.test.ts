import assert from "node:assert/strict";
import { mkdirSync, readdirSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, it, type TestContext } from "node:test";
import type { Sandbox } from "../../sandbox/spec.ts";
import { until } from "../../kit/until.ts";
import { currentBoot, type InstanceFolder, type InstanceRecord } from "./instance-folder.ts";
import { InstanceFolders } from "./instance-folders.ts";
import { isRunning, settleExit, toInstance } from "./observe-instance.ts";
import { createProcessRuntime } from "./process-runtime.ts";
import type { ProcessRuntimeOptions } from "./settings.ts";
import { watchInstances } from "./watch-instances.ts";
import { guardMs } from "../../../test/support/eventually.ts";
import { testFolder } from "../../../test/support/test-folder.ts";

// No application runs here: the tests read the applications' files as they are after a power cut, or while the disk is full.
describe("the files of applications", () => {
  const root = testFolder("power-cut");
  const swept: (readonly string[])[] = [];
  const sandbox = {
    outOfMemory(id: string) {
      if (id === "run-broken") throw new Error("too many open files");
      return false;
    },
    remove: async () => {},
    sweep: async (_: string, kept: readonly string[]) => {
      swept.push(kept);
      return [];
    },
    describe: () => ({ isolation: ["memory_limit"] }),
  } as unknown as Sandbox;
  let stateDir: string;
  let folders: InstanceFolders;
  let options: ProcessRuntimeOptions;
  let count = 0;
  const start = (workload_id: string, more: Partial<InstanceRecord> = {}): InstanceFolder => {
    const ordinal = more.ordinal ?? 0;
    const attempt = (folders.latestOf(workload_id, ordinal)?.record.attempt ?? 0) + 1;
    const place = { workload_id, ordinal, attempt, project_id: "prj_a", image_ref: "i", sandbox_id: `run-${attempt}` };
    const time = { boot_id: currentBoot(), started_at: new Date(Date.now() - 60_000).toISOString() };
    const limits = { memoryBytes: 1, processes: 1, cpus: 1 };
    const folder = folders.claim({ ...place, ...time, limits, address: null, ...more }, 0);
    return folder;
  };
  const emptied = (folder: InstanceFolder, name: string) => writeFileSync(join(folder.path, name), "");
  // Makes the file unusable for every reader and writer, including root.
  const broken = (folder: InstanceFolder, name: string) => {
    rmSync(join(folder.path, name), { force: true });
    mkdirSync(join(folder.path, name));
  };
  const open = async (t: TestContext) => {
    const runtime = await createProcessRuntime(options);
    t.after(() => runtime.close());
    return runtime;
  };
  beforeEach(() => {
    stateDir = join(root, String((count += 1)));
    folders = new InstanceFolders(stateDir);
    options = { sandbox, stateDir, releasesDir: stateDir, storageDir: () => stateDir };
  });

  it("of an attempt without a record count as none, and the attempt can be started", () => {
    const first = start("dep_a");
    emptied(start("dep_a"), "instance.json");
    folders = new InstanceFolders(stateDir);
    assert.equal(folders.latestOf("dep_a", 0)?.path, first.path);
    assert.equal(start("dep_a").record.attempt, 2);
  });

  it("of the newest three attempts are kept", () => {
    for (let count = 0; count < 5; count += 1) start("dep_a");
    assert.deepEqual(readdirSync(join(stateDir, "live/dep_a/0")).toSorted(), ["3", "4", "5"]);
  });

  it("are read once more when an application has ended, because only then a last line without a line feed is one", () => {
    const folder = start("dep_a");
    const exit = { code: 0, out_of_memory: false, at: new Date() };
    assert.notEqual(toInstance(folder, undefined).output_mark, toInstance(folder, exit).output_mark);
  });

  it("tell that an application has ended also when how it ended is lost", () => {
    const folder = start("dep_a");
    emptied(folder, "ended.json");
    assert.equal(isRunning(folder), false);
    assert.equal(settleExit(folder, sandbox)?.code, null);
  });

  it("tell that an application has ended when its pid is lost, or never fitted on the disk, and whether the machine did", () => {
    for (const boot_id of [currentBoot(), "another"]) {
      const folder = start("dep_a", { boot_id });
      emptied(folder, "pid");
      const exit = settleExit(folder, sandbox);
      assert.deepEqual([exit?.code, exit?.stopped === true], [null, boot_id === "another"]);
    }
  });

  it("tell how an application ended while the disk takes nothing, and have it written down later", () => {
    const folder = start("dep_a", { boot_id: "another" });
    writeFileSync(join(folder.path, "exit"), "3\n");
    broken(folder, `ended.json.${process.pid}.new`);
    assert.equal(settleExit(folder, sandbox)?.code, 3);
    assert.equal(folder.settledExit(), undefined);
    rmdirSync(join(folder.path, `ended.json.${process.pid}.new`));
    settleExit(folder, sandbox);
    assert.equal(folder.settledExit()?.code, 3);
  });

  it("that cannot be read keep the platform from nothing, and count as running", async (t) => {
    const unread = start("dep_a", { sandbox_id: "run-broken", boot_id: "another" });
    const ended = start("dep_b", { boot_id: "another" });
    const runtime = await open(t);
    const states = (await runtime.observe()).map(({ workload_id, state }) => `${workload_id} ${state}`);
    assert.deepEqual(states.toSorted(), ["dep_a running", "dep_b exited"]);
    assert.deepEqual([unread.settledExit() === undefined, ended.settledExit() === undefined], [true, false]);
    assert.deepEqual(swept.splice(0), [], "sandboxes of unknown owners stay");
  });

  it("without a single record are deleted when the platform starts", async (t) => {
    emptied(start("dep_a"), "instance.json");
    const runtime = await open(t);
    assert.deepEqual(await runtime.observe(), []);
    assert.deepEqual(folders.workloads(), []);
    assert.deepEqual(swept.splice(0), [[]]);
  });

  it("on a damaged disk count as emptied", () => {
    const first = start("dep_a", { boot_id: "another" });
    broken(start("dep_a"), "instance.json");
    broken(first, "exit");
    folders = new InstanceFolders(stateDir);
    assert.equal(folders.latestOf("dep_a", 0)?.path, first.path);
    assert.equal(settleExit(first, sandbox)?.code, null);
  });

  it("that cannot be looked at do not keep the others from being watched", async (t) => {
    const watch = watchInstances(options, folders);
    const ended: string[] = [];
    watch.listen((workloadId) => ended.push(workloadId));
    const [bad, good] = [start("dep_a", { sandbox_id: "run-broken" }), start("dep_b")];
    for (const folder of [bad, good]) watch.add(folder);
    watch.start();
    t.after(() => watch.stop());
    assert.ok(await until(() => ended.includes("dep_b") || undefined, { timeoutMs: guardMs }));
    assert.deepEqual(ended, ["dep_b"]);
  });
});
