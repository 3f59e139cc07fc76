// Drawn with other operation files: it starts a whole platform on small disks, which takes too long for every run.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { run, runOk } from "../../src/kit/exec.ts";
import { startInstalled, type InstalledPlatform } from "./installed.ts";
import { ask, failures, startTraffic } from "./traffic.ts";

const mib = 1024 * 1024;
const next = "0.2.0";

describe("an upgrade", { skip: process.getuid?.() !== 0 && "only root can mount a small disk" }, () => {
  const [folder, dataDir] = [mkdtempSync(join(tmpdir(), "berth-small-")), mkdtempSync(join(tmpdir(), "berth-full-"))];
  const mounted: string[] = [];
  const mount = async (at: string, size: string) => {
    mkdirSync(at, { recursive: true });
    await runOk({ file: "mount", args: ["-t", "tmpfs", "-o", `size=${size},mode=700`, "tmpfs", at] });
    mounted.push(at);
  };
  const unmount = (at: string) => run({ file: "umount", args: ["--lazy", at] });
  let platform: InstalledPlatform;

  before(async () => {
    await mount(dataDir, "1500m");
    await mount(folder, "900m");
    await runOk({ file: "chmod", args: ["755", folder] });
    platform = await startInstalled({ "0.1.0": {}, [next]: {} }, { folder, dataDir });
  });
  afterEach(async () => {
    platform.onFetch = async () => {};
    for (const disk of [folder, dataDir]) rmSync(join(disk, "ballast"), { force: true });
    for (const at of mounted.splice(2)) await unmount(at);
    rmSync(join(platform.prefix, "versions", next), { recursive: true, force: true });
  });
  after(async () => {
    platform?.close();
    for (const at of mounted) await unmount(at);
    for (const each of [folder, dataDir]) rmSync(each, { recursive: true, force: true });
  });

  /** Leaves so much of the disk. */
  const fill = async (disk: string, leftMib: number) => {
    const { bavail, bsize } = statfsSync(disk);
    const length = bavail * bsize - leftMib * mib;
    await runOk({ file: "fallocate", args: ["--length", `${length}`, join(disk, "ballast")] });
  };

  const cases: readonly (readonly [step: string, reason: RegExp, full: () => Promise<void>, options?: string[]])[] = [
    ["the version is fetched", /^The disk of .*versions is full/, () => fill(folder, 4)],
    [
      "the platform is backed up",
      /The storage of backups is full\. .*--without-backup/,
      () => mount(join(dataDir, "backups"), "64k"),
    ],
    [
      "the database is copied",
      /^The disk of .*control-copies is full/,
      () => mount(join(dataDir, "control-copies"), "16k"),
      ["--without-backup"],
    ],
    ["the copy is tried", /The disk of the data folder .* is full/, () => fill(dataDir, 24), ["--without-backup"]],
  ];
  for (const [step, reason, full, options = []] of cases)
    it(`for which the disk is full when ${step} ends with that reason, and the version before serves`, async () => {
      const { pid } = platform.controlPlane();
      platform.onFetch = full;
      const traffic = startTraffic(platform.ground.ports.edge, ["shop"], 5);
      const { upgrade, version } = await platform.upgradeTo(next, ...options);
      const answers = await traffic.stop();
      assert.deepEqual([upgrade.status, version], ["failed", "0.1.0"]);
      assert.match(upgrade.reason ?? "", reason);
      assert.equal(platform.controlPlane().pid, pid);
      assert.deepEqual(
        failures(answers, (body) => body === "shop"),
        [],
      );
      const left = readdirSync(join(platform.prefix, "versions")).filter((name) => name.startsWith("."));
      assert.deepEqual(left, [], "nothing unfinished is left");
    });

  it("succeeds once there is room", async () => {
    const { upgrade, version } = await platform.upgradeTo(next);
    assert.deepEqual([upgrade.status, version], ["done", next], upgrade.reason ?? "");
    assert.equal((await ask(platform.ground.ports.edge, "shop", "/")).body, "shop");
  });
});
