import assert from "node:assert/strict";
import { test } from "node:test";
import { testBuild, testDeployment, testProject } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { mask } from "../../contract/env.ts";
import { variablesOf } from "./env.ts";

const api = await sharedApi();
const org = await testOrganization(api.database.db, "acme", { maxProjects: 100 });

async function newProject() {
  const project = await testProject(api.platform, org);
  const path = (key = "") => `/v1/projects/${project.slug}/env${key === "" ? "" : `/${key}`}`;
  return {
    ...project,
    set: (key: string, value: unknown) => api.call("PUT", path(key), { token: org.member, body: { value } }),
    import: (body: unknown) => api.call("PATCH", path(), { token: org.member, body }),
    unset: (key: string) => api.call("DELETE", path(key), { token: org.member }),
    list: async () =>
      (await api.call("GET", path(), { token: org.member })).body["variables"] as {
        key: string;
        value: string;
        system: boolean;
      }[],
    changedAt: async () =>
      (
        await api.database.db
          .selectFrom("project")
          .select("variables_changed_at")
          .where("id", "=", project.id)
          .executeTakeFirstOrThrow()
      ).variables_changed_at,
    values: () => variablesOf(api.database.db, api.platform.vault, { org_id: org.id, project_id: project.id }),
  };
}

test("a value is sealed, never listed, and comes out for the platform alone", async () => {
  const project = await newProject();
  assert.equal((await project.set("API_KEY", "hunter2 ☃")).status, 204);
  assert.deepEqual(await project.values(), { API_KEY: "hunter2 ☃" });
  const own = (await project.list()).filter(({ system }) => !system);
  assert.deepEqual(
    own.map(({ key, value }) => [key, value]),
    [["API_KEY", mask]],
  );
  const { db } = api.database;
  const stored = [
    await db.selectFrom("project_variable").selectAll().execute(),
    await db.selectFrom("activity").selectAll().execute(),
  ];
  assert.ok(!JSON.stringify(stored).includes("hunter2"));
  assert.ok(!JSON.stringify(stored).includes(Buffer.from("hunter2").toString("base64").slice(0, 8)));
});

test("the platform's own variables are listed with a flag, the database's once there is one", async () => {
  const project = await newProject();
  const system = async () => (await project.list()).filter((each) => each.system).map(({ key }) => key);
  assert.deepEqual(await system(), [
    "BERTH_DEPLOYMENT",
    "BERTH_GIT_SHA",
    "BERTH_PROJECT",
    "BERTH_URL",
    "CRON_SECRET",
    "HOST",
    "PORT",
    "STORAGE_DIR",
  ]);
  const row = {
    id: `dbs_${project.id}`,
    org_id: org.id,
    project_id: project.id,
    role_name: "r",
    database_name: "d",
    sealed_password: Buffer.from(""),
  };
  await api.database.db.insertInto("project_database").values(row).execute();
  const withDatabase = await system();
  for (const key of ["DATABASE_URL", "PGHOST", "PGPASSWORD"]) assert.ok(withDatabase.includes(key));
});

test("the platform's own variables can be neither set nor removed", async () => {
  const project = await newProject();
  for (const key of ["PORT", "DATABASE_URL", "PGPASSWORD", "PGOPTIONS", "BERTH_URL", "CRON_SECRET"]) {
    assert.equal((await project.set(key, "x")).body["code"], "system_variable");
    assert.equal((await project.unset(key)).body["code"], "system_variable");
  }
});

test("keys and values are bounded", async () => {
  const project = await newProject();
  for (const key of ["1A", "A-B", "A.B", "Ä", "A".repeat(129)])
    assert.equal((await project.set(key, "x")).status, 400, key);
  for (const value of ["a\0b", "x".repeat(32 * 1024 + 1), "ä".repeat(16 * 1024 + 1), 5, null])
    assert.equal((await project.set("A", value)).status, 400);
  assert.equal((await project.set("A".repeat(128), "")).status, 204);
  assert.equal((await project.set("A", "x".repeat(32 * 1024))).status, 204);
});

test("a project's variables together are at most 64 KiB, also when they are set at once", async () => {
  const project = await newProject();
  const set = await Promise.all(["A", "B", "C", "D"].map((key) => project.set(key, "x".repeat(30 * 1024))));
  assert.deepEqual(
    set.map(({ status }) => status).toSorted((a, b) => a - b),
    [204, 204, 413, 413],
  );
  assert.ok(set.every(({ body }) => body["code"] === undefined || body["code"] === "variables_too_large"));
  const [first] = Object.keys(await project.values());
  assert.equal((await project.set(first as string, "x".repeat(32 * 1024))).status, 204);
});

test("removing what isn't there is not found", async () => {
  const project = await newProject();
  await project.set("A", "1");
  assert.deepEqual([(await project.unset("A")).status, (await project.unset("A")).status], [204, 404]);
});

test("a change marks a project that runs, and only a change does", async () => {
  const project = await newProject();
  await project.set("A", "1");
  assert.equal(await project.changedAt(), null);
  const owner = { org_id: org.id, project_id: project.id };
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  await testDeployment(api.platform, owner, { build_id, number: 1, status: "active" });
  await project.set("A", "1");
  assert.equal(await project.changedAt(), null);
  await project.set("A", "2");
  assert.notEqual(await project.changedAt(), null);
});

test("several variables are set in one call, or a .env file's, all or none", async () => {
  const project = await newProject();
  const { status, body } = await project.import({ variables: { A: "1", B: "" } });
  assert.deepEqual([status, body], [200, { changed: ["A", "B"], unchanged: [] }]);
  const file = await project.import({ file: "A=1\nB='$x'\nexport C=\"two\\nlines\"\n" });
  assert.deepEqual(file.body, { changed: ["B", "C"], unchanged: ["A"] });
  assert.deepEqual(await project.values(), { A: "1", B: "$x", C: "two\nlines" });
  const { db } = api.database;
  const [newest] = await db
    .selectFrom("activity")
    .select(["action", "target"])
    .where("project_id", "=", project.id)
    .orderBy("id", "desc")
    .execute();
  assert.deepEqual(newest, { action: "env.imported", target: "B, C" });
  const refused = [
    { file: 'D=1\nJ="{\\"a\\":1}"' },
    { file: "D='open" },
    { file: "# nothing" },
    { file: `D=${"x".repeat(33 * 1024)}` },
    { variables: {} },
    { variables: { D: "1" }, file: "D=1" },
    { variables: { "D-1": "1" } },
    {},
  ];
  for (const each of refused) assert.equal((await project.import(each)).status, 400, JSON.stringify(each).slice(0, 80));
  const { body: numbered } = await project.import({ file: 'D=1\nE="a" b' });
  assert.match(JSON.stringify(numbered["details"]), /line 2 \(E\): text follows the closing quote/);
  assert.equal((await project.import({ variables: { D: "1", PORT: "1" } })).status, 409);
  const large = Object.fromEntries(["D", "E", "F"].map((key) => [key, "x".repeat(30 * 1024)]));
  assert.equal((await project.import({ variables: large })).status, 413);
  assert.deepEqual(Object.keys(await project.values()), ["A", "B", "C"]);
});
