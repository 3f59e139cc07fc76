import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { run, runOk } from "../../src/kit/exec.ts";
import { createApp, nodeApp, startPlatform, type TestApp, type TestPlatform } from "./platform.ts";
import { listProcesses, processesNaming } from "./processes.ts";

// Drawn with other operation files: it starts whole platforms, which takes too long for every run.

/** Mounts an ext4 file system. `fail` triggers an error in it, so that it turns read-only while files are open, as on a broken disk. */
async function mountImage(image: string, folder: string): Promise<{ fail(): void }> {
  await runOk({ file: "truncate", args: ["--size", "2G", image] });
  await runOk({ file: "mkfs.ext4", args: ["-q", image] });
  await runOk({ file: "mount", args: ["-o", "loop,errors=remount-ro", image, folder] });
  const source = readFileSync("/proc/mounts", "utf8")
    .split("\n")
    .find((line) => line.split(" ")[1] === folder);
  const device = basename(source?.split(" ")[0] ?? "");
  return { fail: () => writeFileSync(`/sys/fs/ext4/${device}/trigger_fs_error`, "1") };
}

describe("a disk that turns read-only", { skip: process.getuid?.() !== 0 && "only root can mount a disk" }, () => {
  const place = mkdtempSync(join(tmpdir(), "berth-read-only-"));
  const dataDir = mkdtempSync(join(tmpdir(), "berth-read-only-data-"));
  let platform: TestPlatform;
  let app: TestApp;
  let running: ReturnType<typeof processesNaming>;

  before(async () => {
    const disk = await mountImage(join(place, "image"), dataDir);
    platform = await startPlatform({}, { dataDir });
    app = await createApp(platform, "served", nodeApp("served"));
    assert.equal((await platform.call("POST", "/v1/projects/served/database")).status, 201);
    const pushed = await app.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    // Read while the disk is whole: a database that writes afterwards ends by itself.
    running = processesNaming(dataDir);
    for (const part of [/^node server.js/, /bin\/postgres /, /haproxy /])
      assert.ok(
        running.some(({ commandLine }) => part.test(commandLine)),
        String(part),
      );
    disk.fail();
  });
  after(async () => {
    await platform?.end("SIGKILL");
    await run({ file: "umount", args: ["--lazy", dataDir] });
    for (const folder of [place, dataDir]) rmSync(folder, { recursive: true, force: true });
  });

  it("is reported: every write responds 503 and /readyz shows the reason, while applications keep serving", async () => {
    const writes = [
      ["POST", "/v1/projects", { slug: "more", name: "More" }],
      ["PUT", "/v1/projects/served/env/COLOUR", { value: "green" }],
      ["POST", "/v1/projects/served/deployments", undefined],
      ["POST", "/v1/projects/served/database", undefined],
      ["DELETE", "/v1/projects/served", undefined],
    ] as const;
    for (const [method, path, body] of writes) {
      const called = await platform.call<{ code: string }>(method, path, body);
      assert.deepEqual([called.status, called.body.code], [503, "unavailable"], `${method} ${path}`);
    }
    const ready = await fetch(`${platform.api}/readyz`);
    const { checks } = (await ready.json()) as { checks: { name: string; ok: boolean; detail: string | null }[] };
    const { ok, detail } = checks.find(({ name }) => name === "disk") ?? {};
    assert.deepEqual([ready.status, ok, detail], [503, false, "The data folder cannot be written."]);
    assert.equal((await platform.visit("served")).body, "served");
  });

  it("rejects a push with a clear message", async () => {
    await app.commit(nodeApp("changed"));
    const pushed = await app.push();
    assert.notEqual(pushed.exitCode, 0);
    assert.match(pushed.stderr, /database does not answer|cannot write to its disk/);
    assert.match(pushed.stderr, /error: 503/);
  });

  it("does not prevent applications, databases and the edge from ending with the platform", async () => {
    const pids = new Set([...running, ...processesNaming(dataDir)].map(({ pid }) => pid));
    await platform.end("SIGTERM");
    const left = listProcesses().filter(({ pid }) => pids.has(pid));
    assert.deepEqual(left, []);
  });
});
