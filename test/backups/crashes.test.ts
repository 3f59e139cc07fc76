import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { specOf } from "../../src/features/database/database.ts";
import { until } from "../../src/kit/until.ts";
import { startBackupPlatform, type BackupPlatform, type TestProject } from "../support/backups.ts";
import { drawCases } from "../support/draw-cases.ts";
import { startNode } from "../support/node-process.ts";

const script = fileURLToPath(new URL("../support/backup-control-plane.ts", import.meta.url));
type Kind = "backup" | "restore" | "verify";

describe("a control plane that is killed", { skip: missingPart, timeout: 300_000 }, () => {
  let running: BackupPlatform;
  let project: TestProject;

  before(async () => {
    running = await startBackupPlatform({ paused: true });
    project = await running.project();
    await project.query("create table t as select i, md5(i::text) from generate_series(1, 50000) i");
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
  for (const [step, kind] of drawCases(cases, 4)) {
    it(`while ${step} in a ${kind} leaves work that the next one finishes, and nothing else`, async () => {
      const given = kind === "backup" ? undefined : await completed();
      const before = await stored();
      const asked = ask(kind, given);
      await killAt(step);
      await workedOff();
      const answer = await asked;
      assert.ok(answer.status < 300, answer.text);
      const { databases, files } = await stored();
      const restored = kind === "restore" ? [answer.body["database"] as string] : [];
      assert.deepEqual(databases, [...before.databases, ...restored].toSorted());
      assert.equal(files, before.files + (kind === "backup" ? 1 : 0));
      assert.deepEqual(await readdir(join(running.backupsDir, ".unfinished")), []);
      const { body } = await finish(
        running.call("POST", `/v1/backups/${given ?? (answer.body["id"] as string)}/verify`),
      );
      assert.equal(body["status"], "verified", JSON.stringify(body));
    });
  }

  function ask(kind: Kind, given: string | undefined) {
    if (kind === "backup") return running.call("POST", `/v1/projects/${project.slug}/backups`);
    if (kind === "verify") return running.call("POST", `/v1/backups/${given}/verify`);
    return running.call("POST", `/v1/projects/${project.slug}/restore`, { backup_id: given });
  }

  async function completed(): Promise<string> {
    const { body } = await finish(running.call("POST", `/v1/projects/${project.slug}/backups`));
    await running.ended(body["id"] as string);
    return body["id"] as string;
  }

  /** Works on the project in a control plane that nobody kills before it is done. */
  async function finish<T>(asked: Promise<T>): Promise<T> {
    await requested();
    await workedOff();
    return asked;
  }

  async function requested(): Promise<void> {
    await until(async () => ((await isRunning()) ? true : undefined), { timeoutMs: 60_000 });
  }

  async function isRunning(): Promise<boolean> {
    const rows = await running.platform.db
      .selectFrom("backup_operation")
      .select("id")
      .where("project_id", "=", project.id)
      .where("status", "=", "running")
      .execute();
    return rows.length > 0;
  }

  async function workedOff(): Promise<void> {
    const child = await controlPlane("none");
    const done = await until(async () => ((await isRunning()) ? undefined : true), { timeoutMs: 60_000 });
    child.kill("SIGKILL");
    assert.ok(done, "the operation was not finished");
  }

  async function killAt(step: string): Promise<void> {
    await requested();
    const child = await controlPlane(step);
    let printed = "";
    child.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString()));
    const there = await until(() => (printed.includes("reached") ? true : undefined), { timeoutMs: 60_000 });
    child.kill("SIGKILL");
    assert.ok(there, "the step was not reached");
    await new Promise((resolve) => child.once("close", resolve));
  }

  async function controlPlane(step: string) {
    const child = startNode([script]);
    child.stderr.pipe(process.stderr);
    const { password } = specOf(running.platform.vault, await project.row());
    const { backupsDir, hostOptions: host } = running;
    child.stdin.end(JSON.stringify({ connection: running.api.database.connection, host, password, backupsDir, step }));
    return child;
  }

  async function stored() {
    const row = await project.row();
    const databases = await running.host.listDatabases({ ...row, password: "", access: "open" as const });
    const files = await readdir(join(running.backupsDir, running.org.id, project.id)).catch(() => []);
    return { databases: databases.toSorted(), files: files.length };
  }
});
