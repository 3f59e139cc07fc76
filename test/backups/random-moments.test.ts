// Drawn with other data files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { archivesTask } from "../../src/reconcile/archives/archives-task.ts";
import { startBackupPlatform, type BackupPlatform, type TestProject } from "../support/backups.ts";
import { drawCases } from "../support/draw-cases.ts";
import { eventually } from "../support/eventually.ts";
import { ledgerTable, startLedger, wrongAt, type Ledger } from "../support/ledger.ts";
import { seededRandom } from "../support/seeded-random.ts";

const cases = Array.from({ length: 200 }, (_, index) => index + 1);

describe("a random moment under writes", { skip: missingPart }, () => {
  const random = seededRandom();
  let running: BackupPlatform;
  let project: TestProject;
  let ledger: Ledger | undefined;
  let firstMs = 0;

  before(async () => {
    running = await startBackupPlatform();
    await running.startTask(() => archivesTask(running.platform));
    project = await running.project();
    await project.query(ledgerTable);
    firstMs = await eventually(async () => {
      await running.platform.wakeups.send(running.platform.db, "archives");
      const { body } = await running.call("GET", `/v1/projects/${project.slug}/database/archive`);
      const [window] = body["windows"] as { from: string }[];
      return window !== undefined && Date.parse(window.from);
    }, "the first copy is made");
    const started = (ledger = startLedger(() => project.login(), { writers: 4, pauseMs: 600 }));
    await eventually(() => started.commits.size > 20, "there are commits");
  });
  after(async () => {
    process.stdout.write(`${await ledger?.stop()} commits\n`);
    await running?.close();
  });

  for (const number of drawCases(cases, 6))
    it(`shows exactly what was committed (${number})`, async () => {
      const at = new Date(firstMs + Math.floor(random() * (Date.now() - firstMs)));
      const { status, body, text } = await running.call("POST", `/v1/projects/${project.slug}/restore`, {
        at: at.toISOString(),
      });
      assert.equal(status, 201, text);
      const name = body["database"] as string;
      const shown = new Set((await project.query("select id from ledger", name)).map(({ id }) => id as number));
      assert.deepEqual(wrongAt(ledger as Ledger, shown, at.getTime()), { lacking: [], early: [] }, at.toISOString());
      assert.equal(
        (await running.call("DELETE", `/v1/projects/${project.slug}/database/restored/${name}`)).status,
        204,
      );
    });
});
