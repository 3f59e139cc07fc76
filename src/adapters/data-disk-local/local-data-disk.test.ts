import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { runOk } from "../../kit/exec.ts";
import { diskFault } from "../../kit/disk-fault.ts";
import { createLocalDataDisk } from "./local-data-disk.ts";

const mib = 1024 * 1024;
const floorBytes = 16 * mib;

describe("the disk of a data folder", { skip: process.getuid?.() !== 0 && "only root can mount a small disk" }, () => {
  const dir = mkdtempSync(join(tmpdir(), "berth-disk-"));
  const disk = createLocalDataDisk({ dataDir: dir, floorBytes });
  const mounted = mount(dir, "size=64m,nr_inodes=1000");
  after(async () => {
    await mounted;
    await runOk({ file: "umount", args: [dir] });
    rmSync(dir, { recursive: true });
  });
  const fill = (name: string, bytes: number) => writeFileSync(join(dir, name), Buffer.alloc(bytes, 1));

  it("makes a reserve while there is plenty, and keeps it", async () => {
    await mounted;
    assert.equal(await disk.keepReserve(), "made");
    assert.equal(await disk.keepReserve(), "kept");
    const { available_bytes, is_short, is_full } = await disk.observe();
    assert.ok(available_bytes <= 56 * mib, "the reserve holds no space");
    assert.deepEqual([is_short, is_full], [false, false]);
  });

  it("is low before it is short", async () => {
    fill("branch", 39 * mib);
    const { is_low, is_short } = await disk.observe();
    assert.deepEqual([is_low, is_short], [true, false]);
    rmSync(join(dir, "branch"));
  });

  it("is short below the floor, and frees the reserve before the disk is full", async () => {
    fill("tenant", 44 * mib);
    assert.deepEqual(await shortness(), [true, false]);
    assert.equal(await disk.keepReserve(), "kept");
    fill("more", 11 * mib);
    assert.deepEqual(await shortness(), [true, true]);
    assert.equal(await disk.keepReserve(), "freed");
    assert.deepEqual(await shortness(), [true, false]);
  });

  it("leaves the reserve to the platform while space is short, and makes it again afterwards", async () => {
    fill("platform", 5 * mib);
    assert.equal(await disk.keepReserve(), "missing");
    for (const name of ["tenant", "more", "platform"]) rmSync(join(dir, name));
    assert.equal(await disk.keepReserve(), "made");
  });

  it("is short of inodes as of space, and says why nothing can be written", async () => {
    assert.throws(() => {
      for (let count = 0; ; count += 1) writeFileSync(join(dir, `empty-${count}`), "");
    });
    assert.deepEqual(await shortness(), [true, true]);
    await assert.rejects(disk.probeWrite(), (error) => diskFault(error) === "full");
    await runOk({ file: "mount", args: ["-o", "remount,ro", dir] });
    await assert.rejects(disk.probeWrite(), (error) => diskFault(error) === "read_only");
  });

  async function shortness(): Promise<boolean[]> {
    const { is_short, is_full } = await disk.observe();
    return [is_short, is_full];
  }
});

async function mount(dir: string, options: string): Promise<void> {
  await runOk({ file: "mount", args: ["-t", "tmpfs", "-o", options, "tmpfs", dir] });
}
