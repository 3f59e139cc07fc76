import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { testDatabase, type TestDatabase } from "../../../test/support/database.ts";
import { testProject } from "../../../test/support/fixtures.ts";
import { testOrganization } from "../../../test/support/test-platform.ts";
import { platformDouble } from "../../../test/support/platform-double.ts";
import { postgresHostDouble } from "../../../test/support/port-doubles.ts";
import type { DatabaseObservation, DatabaseSpec } from "../../ports/postgres-host.ts";
import { createDatabasesComingUp } from "./databases-coming-up.ts";

let database: TestDatabase;

before(async () => {
  database = await testDatabase();
});
after(() => database.drop());

test("an application waits for its own database after a start of the control plane or an undelete, and for a minute at most", async (t) => {
  const { db, vault } = database;
  const org = await testOrganization(db, "acme", { maxProjects: 10 });
  const [down, up, made, without] = await Promise.all(
    ["down", "up", "made", "without"].map((slug) => testProject({ db, vault }, org, slug)),
  );
  for (const [project, status] of [
    [down, "ready"],
    [up, "ready"],
    [made, "provisioning"],
  ] as const) {
    const project_id = project?.id ?? "";
    const id = `dbs_${project_id}`;
    const sealed_password = vault.seal(project_id, "database_password", "secret");
    const names = { role_name: `u${id}`, database_name: `d${id}`, sealed_password };
    await db
      .insertInto("project_database")
      .values({ id, org_id: org.id, project_id, status, ...names })
      .execute();
  }
  const asked: string[] = [];
  const observe = async ({ id }: DatabaseSpec): Promise<DatabaseObservation> => {
    asked.push(id);
    return { state: id === `dbs_${up?.id}` ? "running" : "stopped" } as DatabaseObservation;
  };
  const clock = { now: () => new Date(Date.now() + passedMs) };
  let passedMs = 0;
  const platform = platformDouble({ db, vault, clock, ports: { postgresHost: postgresHostDouble({ observe }) } });
  const comingUp = createDatabasesComingUp(platform);
  const all = new Set([down, up, made, without].map((project) => project?.id ?? ""));
  assert.deepEqual(await comingUp(all), new Set([down?.id]));
  assert.deepEqual(await comingUp(new Set([without?.id ?? ""])), new Set());
  assert.equal(asked.length, 2, "only databases that ran before, of the projects in question, are observed");
  t.mock.method(performance, "now", () => Number.MAX_SAFE_INTEGER);
  passedMs = 3_600_000;
  assert.deepEqual(await comingUp(all), new Set());
  await db
    .updateTable("project")
    .set({ updated_at: clock.now() })
    .where("id", "=", down?.id ?? "")
    .execute();
  assert.deepEqual(
    await comingUp(all),
    new Set([down?.id]),
    "the database of an undeleted project has just been started",
  );
});
