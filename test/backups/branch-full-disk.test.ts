import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { createLocalDataDisk } from "../../src/adapters/data-disk-local/local-data-disk.ts";
import { missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { databaseOf, specOf } from "../../src/features/database/database.ts";
import { runOk } from "../../src/kit/exec.ts";
import { branchesTask } from "../../src/reconcile/branches/branches-task.ts";
import { startBackupPlatform, type BackupPlatform, type TestProject } from "../support/backups.ts";
import { eventually } from "../support/eventually.ts";
import { ledgerTable, startLedger } from "../support/ledger.ts";

const lacking = missingPart || (process.getuid?.() !== 0 && "only root can mount a small disk");
const mib = 1024 ** 2;

describe("a branch that fills the disk", { skip: lacking }, () => {
  const disk = mkdtempSync(join(tmpdir(), "berth-full-"));
  let running: BackupPlatform;
  let project: TestProject;

  before(async () => {
    await runOk({ file: "mount", args: ["-t", "tmpfs", "-o", "size=400m,mode=0711", "tmpfs", disk] });
    running = await startBackupPlatform({ folder: disk });
    const dataDisk = createLocalDataDisk({ dataDir: disk, floorBytes: 160 * mib });
    const platform = { ...running.platform, ports: { ...running.platform.ports, dataDisk } };
    await running.startTask((wake) => branchesTask(platform, wake));
    project = await running.project();
    await project.query(ledgerTable);
  });
  after(async () => {
    await running?.close();
    await runOk({ file: "umount", args: [disk] });
    rmSync(disk, { recursive: true });
  });

  const of = (rest = "") => `/v1/projects/${project.slug}/database/branches${rest}`;

  it("is stopped, and says why, while its source writes on", async () => {
    assert.equal((await running.call("POST", of(), { name: "large" })).status, 201);
    const { db, vault } = running.platform;
    const row = await eventually(() => databaseOf(db, running.org.id, project.id, "large"), "the branch is ready");
    const { password, role_name: user, database_name: database } = specOf(vault, row);
    const client = new pg.Client({ host: row.host ?? "", port: row.port ?? 0, user, password, database });
    client.on("error", () => {});
    await client.connect();
    const ledger = startLedger(() => project.login(), { writers: 2, pauseMs: 20 });
    await client.query("create table filler (body text)");
    await assert.rejects(async () => {
      for (;;) {
        await client.query("insert into filler select repeat(md5(i::text), 30) from generate_series(1, 2000) i");
        await sleep(100);
      }
    });
    const failure = await eventually(
      async () => (await running.call("GET", of("/large"))).body["failure"],
      "it says so",
    );
    assert.equal((failure as { code: string }).code, "storage_full");
    const { size } = ledger.commits;
    await eventually(() => ledger.commits.size > size + 20, "its source writes on");
    const acknowledged = await ledger.stop();
    assert.equal(acknowledged, ledger.commits.size, "no write of its source failed");
    const [{ n } = {}] = await project.query("select count(*)::int as n from ledger");
    assert.equal(n, acknowledged);
    const refused = await running.call("POST", of(), { name: "more" });
    assert.deepEqual([refused.status, refused.body["code"]], [507, "storage_full"]);
    assert.equal((await running.call("DELETE", of("/large"))).status, 204);
  });

  it("that does not fit is refused, and nothing of it is left", async () => {
    const used = join(disk, "used");
    const history = running.host.history((await project.row()).id);
    const source = specOf(running.platform.vault, await project.row());
    await eventually(async () => (await running.host.list()).length === 1, "the other branch is gone");
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
    await project.query("insert into ledger values (0, 'after')");
  });

  const freeBytes = async () => (await createLocalDataDisk({ dataDir: disk, floorBytes: 1 }).observe()).available_bytes;
});
