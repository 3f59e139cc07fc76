import assert from "node:assert/strict";
import { test } from "node:test";
import { testBuild, testDeployment, testProject } from "../../../test/support/fixtures.ts";
import { testFolder } from "../../../test/support/test-folder.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { createDiskLogStore } from "../../adapters/log-store-disk/disk-log-store.ts";
import { timesOfLines } from "./handlers.ts";

const logStore = createDiskLogStore({ dir: testFolder("logs") });
const api = await sharedApi({ ports: { logStore } });
const org = await testOrganization(api.database.db, "acme");

const get = (path: string) => api.call("GET", path, { token: org.member });

test("a project's builds are listed newest first, without the platform's own columns", async () => {
  const project = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id: project.id };
  for (const status of ["failed", "queued"] as const) await testBuild(api.platform, owner, { status });
  const builds = (await get(`/v1/projects/${project.slug}/builds`)).body["builds"] as Record<string, unknown>[];
  assert.deepEqual(
    builds.map(({ number, status }) => [number, status]),
    [
      [2, "queued"],
      [1, "failed"],
    ],
  );
  assert.equal(builds[0]?.["lease_owner"], undefined);
});

test("a build is cancelled until it is live: queued, running, or with its deployment on the way", async () => {
  const project = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id: project.id };
  const cancel = (id: string) => api.call("POST", `/v1/builds/${id}/cancel`, { token: org.member });
  for (const status of ["queued", "running"] as const) {
    const id = await testBuild(api.platform, owner, { status });
    const { status: code, body } = await cancel(id);
    assert.deepEqual([code, body["status"]], [200, "cancelled"]);
    assert.equal((await cancel(id)).status, 409);
  }
  const built = await testBuild(api.platform, owner, { status: "succeeded" });
  await testDeployment(api.platform, owner, { build_id: built, number: 1, status: "starting" });
  const { deployment } = (await cancel(built)).body as { deployment: { status: string; failure: { code: string } } };
  assert.deepEqual([deployment.status, deployment.failure.code], ["failed", "cancelled"]);
  const live = await testBuild(api.platform, owner, { status: "succeeded" });
  await testDeployment(api.platform, owner, { build_id: live, number: 2, status: "active" });
  const refused = await cancel(live);
  assert.equal(refused.status, 409);
  assert.match(String(refused.body["error"]), /has already ended; there is nothing to cancel/);
});

test("a log is read from an offset on and is complete once nothing more can come", async () => {
  const project = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id: project.id };
  const id = await testBuild(api.platform, owner, { status: "running" });
  await logStore.appendBuild(id, ["-----> Node.js", "       24"]);
  const first = (await get(`/v1/builds/${id}/logs`)).body;
  const [time, ...others] = first["times"] as { line: number; at: string }[];
  assert.deepEqual([time?.line, others], [0, []]);
  assert.ok(Math.abs(Date.now() - Date.parse(time?.at ?? "")) < 3_600_000, time?.at);
  assert.deepEqual(
    [first["log"], first["complete"], first["status"]],
    ["-----> Node.js\n       24\n", false, "running"],
  );
  const { db } = api.database;
  await db.updateTable("build").set({ status: "succeeded" }).where("id", "=", id).execute();
  await testDeployment(api.platform, owner, { build_id: id, number: 1, status: "pending" });
  await logStore.appendBuild(id, ["-----> Starting"]);
  const second = (await get(`/v1/builds/${id}/logs?offset=${String(first["next_offset"])}`)).body;
  assert.deepEqual([second["log"], second["complete"]], ["-----> Starting\n", false]);
  await db.updateTable("deployment").set({ status: "active" }).where("build_id", "=", id).execute();
  assert.equal((await get(`/v1/builds/${id}/logs?offset=${String(second["next_offset"])}`)).body["complete"], true);
});

test("a build is shown with the deployment that came of it, not with a later one of the same image", async () => {
  const project = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id: project.id };
  const id = await testBuild(api.platform, owner, { status: "succeeded" });
  assert.equal((await get(`/v1/builds/${id}`)).body["deployment"], null);
  await testDeployment(api.platform, owner, { build_id: id, number: 4, status: "failed" });
  const again = await testDeployment(api.platform, owner, { build_id: id, number: 5, status: "active" });
  const { db } = api.database;
  await db.updateTable("deployment").set({ trigger: "rollback" }).where("id", "=", again).execute();
  const first = { number: 4, status: "failed", failure: null, image_bytes: 0 };
  assert.deepEqual((await get(`/v1/builds/${id}`)).body["deployment"], first);
  // The first is of an upload without git, the second of a push.
  await db
    .updateTable("deployment")
    .set({ trigger: "upload" })
    .where("build_id", "=", id)
    .where("number", "=", 4)
    .execute();
  assert.deepEqual((await get(`/v1/builds/${id}`)).body["deployment"], first);
});

test("a long log comes in pieces that make up the whole", async () => {
  const project = await testProject(api.platform, org);
  const id = await testBuild(api.platform, { org_id: org.id, project_id: project.id }, { status: "failed" });
  const lines = Array.from({ length: 3000 }, (_, i) => `${i} ${"x".repeat(1000)}`);
  await logStore.appendBuild(id, lines);
  let log = "";
  for (let offset = 0, complete = false; !complete;) {
    const { body } = await get(`/v1/builds/${id}/logs?offset=${offset}`);
    log += String(body["log"]);
    offset = Number(body["next_offset"]);
    complete = body["complete"] === true;
  }
  assert.equal(log, `${lines.join("\n")}\n`);
});

test("the newest build's lines can be listed by the project, the last ones or those behind a cursor", async () => {
  const project = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id: project.id };
  const list = async (query: string) =>
    (await get(`/v1/projects/${project.slug}/logs?source=build${query}`)).body as {
      lines: { text: string }[];
      next_cursor: string | null;
    };
  assert.deepEqual(await list(""), { source: "build", lines: [], next_cursor: null });
  const id = await testBuild(api.platform, owner, { status: "running" });
  await logStore.appendBuild(id, ["one", "two", "three"]);
  const page = await list("&limit=2");
  assert.deepEqual(
    page.lines.map(({ text }) => text),
    ["two", "three"],
  );
  await logStore.appendBuild(id, ["four"]);
  assert.deepEqual(
    (await list(`&after=${page.next_cursor}`)).lines.map(({ text }) => text),
    ["four"],
  );
});

test("a build's log is read to its end in pages that miss no line and repeat none", async () => {
  const project = await testProject(api.platform, org);
  const id = await testBuild(api.platform, { org_id: org.id, project_id: project.id }, { status: "running" });
  const lines = Array.from({ length: 1000 }, (_, i) => `${i} äöü ☃ ${"x".repeat(i % 50 === 0 ? 100_000 : i % 7)}`);
  await logStore.appendBuild(id, lines);
  const seen: string[] = [];
  for (let after = `${id}:0`; ;) {
    const { body } = await get(`/v1/projects/${project.slug}/logs?source=build&limit=170&after=${after}`);
    const page = body as { lines: { text: string }[]; next_cursor: string };
    if (page.lines.length === 0) break;
    assert.equal(page.lines.length, Math.min(170, lines.length - seen.length));
    seen.push(...page.lines.map(({ text }) => text));
    after = page.next_cursor;
  }
  assert.deepEqual(seen, lines);
});

test("an application's lines are listed with their deployment and replica", async () => {
  const project = await testProject(api.platform, org);
  const line = { at: "2026-01-02T03:04:05.678Z", deployment: 3, process: "web", replica: 0, text: "hello" };
  await logStore.appendRuntime(project.id, [line, { ...line, text: "again" }]);
  const page = (await get(`/v1/projects/${project.slug}/logs?limit=1`)).body as {
    lines: unknown[];
    next_cursor: string;
  };
  assert.deepEqual(page.lines, [{ ...line, text: "again", level: null }]);
  await logStore.appendRuntime(project.id, [{ ...line, text: "later" }]);
  const next = (await get(`/v1/projects/${project.slug}/logs?after=${encodeURIComponent(page.next_cursor)}`)).body as {
    lines: unknown[];
  };
  assert.deepEqual(next.lines, [{ ...line, text: "later", level: null }]);
});

test("a cursor that no answer of this source gave is invalid", async () => {
  const project = await testProject(api.platform, org);
  const path = `/v1/projects/${project.slug}/logs`;
  for (const query of ["after=x", "after=bld_1:2", "after=-1:0", "source=build&after=0:0", "follow=true&after=later"]) {
    const { status, body } = await get(`${path}?${query}`);
    assert.deepEqual([status, body["code"]], [400, "invalid_request"], query);
    assert.equal((body["details"] as { path: string }[])[0]?.path, "after");
  }
});

const times = [
  { offset: 0, at: "2026-01-31T09:00:00.000Z" },
  { offset: 4, at: "2026-01-31T09:00:02.000Z" },
  { offset: 12, at: "2026-01-31T09:00:05.000Z" },
];

test("a log's lines have the time of the append that wrote them", () => {
  assert.deepEqual(timesOfLines("ä1\nb\nc2345\nd\n", 0, times), [
    { line: 0, at: "2026-01-31T09:00:00.000Z" },
    { line: 1, at: "2026-01-31T09:00:02.000Z" },
    { line: 3, at: "2026-01-31T09:00:05.000Z" },
  ]);
});

test("a part of a log begins with the newest time before it", () => {
  assert.deepEqual(timesOfLines("c2345\nd\n", 6, times), [
    { line: 0, at: "2026-01-31T09:00:02.000Z" },
    { line: 1, at: "2026-01-31T09:00:05.000Z" },
  ]);
  assert.deepEqual(timesOfLines("d\n", 12, times), [{ line: 0, at: "2026-01-31T09:00:05.000Z" }]);
});

test("a log without times, and the end of one, have none", () => {
  assert.deepEqual(timesOfLines("a\n", 0, []), []);
  assert.deepEqual(timesOfLines("", 14, times), []);
});
