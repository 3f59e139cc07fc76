import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { createLocalDataDisk } from "../../src/adapters/data-disk-local/local-data-disk.ts";
import { missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { specOf } from "../../src/features/database/database.ts";
import { runOk } from "../../src/kit/exec.ts";
import { startBackupPlatform, type BackupPlatform, type TestProject } from "../support/backups.ts";

const lacking = missingPart || (process.getuid?.() !== 0 && "only root can mount a small disk");
const mib = 1024 ** 2;

describe("a branch on a small disk", { skip: lacking }, () => {
  const disk = mkdtempSync(join(tmpdir(), "berth-full-"));
  let running: BackupPlatform;
  let project: TestProject;

  before(async () => {
    await runOk({ file: "mount", args: ["-t", "tmpfs", "-o", "size=300m,mode=0711", "tmpfs", disk] });
    running = await startBackupPlatform({ folder: disk });
    project = await running.project();
  });
  after(async () => {
    await running?.close();
    await runOk({ file: "umount", args: [disk] });
    rmSync(disk, { recursive: true });
  });

  it("that does not fit is refused, and nothing of it is left", async () => {
    const used = join(disk, "used");
    const history = running.host.history((await project.row()).id);
    const source = specOf(running.platform.vault, await project.row());
    writeFileSync(used, "");
    await runOk({ file: "fallocate", args: ["--length", String((await freeBytes()) - 24 * mib), used] });
    const target = { ...source, id: "dbb_small", was_ready: true };
    const { signal } = new AbortController();
    const options = { from: null, mask: null, announce: async () => {}, signal };
    await assert.rejects(
      async () => history?.branch(source, target, options),
      (error) => {
        assert.equal((error as { reason?: string }).reason, "full", String(error));
        return true;
      },
    );
    rmSync(used);
    await running.host.destroy(target.id);
    assert.deepEqual(await running.host.list(), [source.id]);
    await project.query("create table after (id int)");
  });

  const freeBytes = async () => (await createLocalDataDisk({ dataDir: disk, floorBytes: 1 }).observe()).available_bytes;
});
