import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { specOf } from "../../src/features/database/database.ts";
import { start } from "../../src/kit/exec.ts";
import { until } from "../../src/kit/until.ts";
import { startBackupPlatform, type BackupPlatform, type TestProject } from "../support/backups.ts";

const script = fileURLToPath(new URL("../support/backup-control-plane.ts", import.meta.url));
type Kind = "backup" | "restore" | "verify";

describe("a control plane that is killed", { skip: missingPart, timeout: 300_000 }, () => {
  let running: BackupPlatform;

  before(async () => {
    running = await startBackupPlatform({ paused: true });
  });
  after(() => running?.close());

  const cases: readonly (readonly [step: string, kind: Kind])[] = [
    ["dumping", "backup"],
    ["writing", "backup"],
    ["stored", "backup"],
    ["creating", "verify"],
    ["restoring", "verify"],
    ["restored", "verify"],
    ["counting", "verify"],
    ["dropping", "verify"],
    ["creating", "restore"],
    ["restoring", "restore"],
    ["restored", "restore"],
  ];
  for (const [step, kind] of cases) {
    it(`while ${step} in a ${kind} leaves work that the next one finishes, and nothing else`, async () => {
      const project = await running.project();
      await project.query("create table t as select i, md5(i::text) from generate_series(1, 50000) i");
      const given = kind === "backup" ? undefined : await completed(project);
      const asked = ask(project, kind, given);
      await killAt(step, project);
      await workedOff(project);
      const answer = await asked;
      assert.ok(answer.status < 300, answer.text);
      await assertNothingLeft(project, kind === "restore" ? (answer.body["database"] as string) : undefined);
      const { body } = await finish(
        project,
        running.call("POST", `/v1/backups/${given ?? (answer.body["id"] as string)}/verify`),
      );
      assert.equal(body["status"], "verified", JSON.stringify(body));
    });
  }

  function ask(project: TestProject, kind: Kind, given: string | undefined) {
    if (kind === "backup") return running.call("POST", `/v1/projects/${project.slug}/backups`);
    if (kind === "verify") return running.call("POST", `/v1/backups/${given}/verify`);
    return running.call("POST", `/v1/projects/${project.slug}/restore`, { backup_id: given });
  }

  async function completed(project: TestProject): Promise<string> {
    const { body } = await finish(project, running.call("POST", `/v1/projects/${project.slug}/backups`));
    await running.ended(body["id"] as string);
    return body["id"] as string;
  }

  /** Works on the project in a control plane that nobody kills before it is done. */
  async function finish<T>(project: TestProject, asked: Promise<T>): Promise<T> {
    await requested(project);
    await workedOff(project);
    return asked;
  }

  async function requested(project: TestProject): Promise<void> {
    await until(async () => ((await isRunning(project)) ? true : undefined), { timeoutMs: 10_000 });
  }

  async function isRunning(project: TestProject): Promise<boolean> {
    const rows = await running.platform.db
      .selectFrom("backup_operation")
      .select("id")
      .where("project_id", "=", project.id)
      .where("status", "=", "running")
      .execute();
    return rows.length > 0;
  }

  async function workedOff(project: TestProject): Promise<void> {
    const child = await controlPlane("none", project);
    const done = await until(async () => ((await isRunning(project)) ? undefined : true), { timeoutMs: 60_000 });
    child.kill("SIGKILL");
    assert.ok(done, "the operation was not finished");
  }

  async function killAt(step: string, project: TestProject): Promise<void> {
    await requested(project);
    const child = await controlPlane(step, project);
    let printed = "";
    child.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString()));
    const there = await until(() => (printed.includes("reached") ? true : undefined), { timeoutMs: 60_000 });
    child.kill("SIGKILL");
    assert.ok(there, "the step was not reached");
    await new Promise((resolve) => child.once("close", resolve));
  }

  async function controlPlane(step: string, project: TestProject) {
    const child = start({ file: process.execPath, args: [script] }, { env: { PATH: process.env["PATH"] ?? "" } });
    child.stderr.pipe(process.stderr);
    const { password } = specOf(running.platform.vault, await project.row());
    const { backupsDir, hostOptions: host } = running;
    child.stdin.end(JSON.stringify({ connection: running.api.database.connection, host, password, backupsDir, step }));
    return child;
  }

  async function assertNothingLeft(project: TestProject, restored: string | undefined): Promise<void> {
    const row = await project.row();
    const names = await running.host.listDatabases({ ...row, password: "", access: "open" as const });
    assert.deepEqual(names.toSorted(), [row.database_name, ...(restored === undefined ? [] : [restored])].toSorted());
    const files = await readdir(join(running.backupsDir, running.org.id, project.id));
    assert.equal(files.length, 1);
    assert.deepEqual(await readdir(join(running.backupsDir, ".unfinished")), []);
  }
});
