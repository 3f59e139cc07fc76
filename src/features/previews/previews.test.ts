import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "../../../test/support/eventually.ts";
import { testProject } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization, type TestOrganization } from "../../../test/support/test-platform.ts";
import { previewFirsts, whyNoPreview } from "../certificates/certificates.ts";
import { newId } from "../../kit/ids.ts";
import { openPreview, removeEndedPreviews } from "./previews.ts";
import { hasPreviews, slugsFor } from "./rules.ts";

const api = await sharedApi();
const { db, wakeups } = api.platform;
const previewing = { ...api.platform, appsDomain: "apps.test", previews: { hours: 72, perProject: 5 } };
const opening = { signal: new AbortController().signal, fill: async () => {} };

async function newParent(org: TestOrganization, slug: string) {
  const { id } = await testProject(api.platform, org, slug);
  return { org_id: org.id, project_id: id };
}

async function opened(parent: { org_id: string; project_id: string }, branch: string) {
  const found = await openPreview(previewing, { ...parent, branch }, opening);
  return found.outcome === "opened" ? found.preview : assert.fail(found.summary);
}

const rowOf = (id: string) => db.selectFrom("project").selectAll().where("id", "=", id).executeTakeFirstOrThrow();

test("a slug is a DNS label that tells the branch, and a second one tells branches apart", () => {
  assert.deepEqual(slugsFor("feature/x", "shop")[0], "feature-x--shop");
  assert.match(slugsFor("feature/x", "shop")[1] ?? "", /^feature-x-[0-9a-f]{6}--shop$/);
  assert.notEqual(slugsFor("feature/x", "shop")[1], slugsFor("feature-x", "shop")[1]);
  assert.match(slugsFor("🦊", "shop").join(), /^branch-[0-9a-f]{6}--shop$/);
  for (const branch of ["x".repeat(200), `${"é-".repeat(90)}`, "---", "a.b@c"])
    for (const slug of slugsFor(branch, "s".repeat(40))) assert.match(slug, /^[a-z0-9](?:[a-z0-9-]{0,54}[a-z0-9])$/);
});

test("a pattern's * stands for any text, slashes included", () => {
  assert.ok(hasPreviews(["*"], "feature/a/b"));
  assert.ok(hasPreviews(["fix/*", "feature/*"], "feature/a/b"));
  assert.ok(!hasPreviews(["feature/*"], "features"));
  assert.ok(!hasPreviews(["release"], "release/1"));
  assert.ok(!hasPreviews(null, "main"));
});

test("of many pushes of one branch at once, one creates the preview; the limit holds for several branches", async () => {
  const parent = await newParent(await testOrganization(db, "busy"), "shop");
  const same = await Promise.all(Array.from({ length: 8 }, () => opened(parent, "one")));
  assert.equal(new Set(same.map(({ project_id }) => project_id)).size, 1);
  const all = await Promise.all(
    Array.from({ length: 8 }, (_, n) => openPreview(previewing, { ...parent, branch: `b${n}` }, opening)),
  );
  assert.equal(all.filter(({ outcome }) => outcome === "opened").length, 4);
});

test("previews do not count as projects of the organization, and take none of their names", async () => {
  const org = await testOrganization(db, "counted", { maxProjects: 2 });
  const parent = await newParent(org, "shop");
  await opened(parent, "one");
  const create = (slug: string) => api.call("POST", "/v1/projects", { token: org.owner, body: { slug, name: slug } });
  assert.equal((await create("two--shop")).status, 201);
  assert.match((await opened(parent, "two")).slug, /^two-[0-9a-f]{6}--shop$/);
  assert.equal((await create("last")).body["code"], "project_limit_reached");
});

test("a preview has its project's settings, a database if that has one, and no archive of it", async () => {
  const parent = await newParent(await testOrganization(db, "like"), "shop");
  await db.updateTable("project").set({ port: 4000, health_path: "/up" }).where("id", "=", parent.project_id).execute();
  const { project_id } = await opened(parent, "one");
  const { port, health_path, deploy_branch, sleep_after_minutes } = await rowOf(project_id);
  assert.deepEqual([port, health_path, deploy_branch, sleep_after_minutes], [4000, "/up", "one", 30]);
  await db.updateTable("project").set({ sleep_after_minutes: 5 }).where("id", "=", parent.project_id).execute();
  await opened(parent, "one");
  assert.equal((await rowOf(project_id)).sleep_after_minutes, 5);
  const databases = () => db.selectFrom("project_database").selectAll().where("project_id", "=", project_id).execute();
  assert.deepEqual(await databases(), []);
  const names = { role_name: "r", database_name: "d", sealed_password: Buffer.from("") };
  await db
    .insertInto("project_database")
    .values({ id: newId("dbs"), ...parent, ...names })
    .execute();
  let isFilled = false;
  const fill = async () => void (isFilled = true);
  const ready = openPreview(previewing, { ...parent, branch: "one" }, { ...opening, fill });
  // A push waits for a database for a minute.
  await eventually(() => isFilled, "it gets its source while its database is made", 30_000);
  await db.updateTable("project_database").set({ status: "ready" }).where("project_id", "=", project_id).execute();
  assert.equal((await ready).outcome, "opened");
  assert.deepEqual(
    (await databases()).map(({ archived }) => archived),
    [false],
  );
});

test("a preview whose time is over is deleted, and the next push of its branch waits until it is purged", async () => {
  const parent = await newParent(await testOrganization(db, "over"), "shop");
  const [old, other] = [await opened(parent, "one"), await opened(parent, "two")];
  await db
    .updateTable("project")
    .set({ preview_expires_at: new Date(Date.now() - 1000) })
    .where("id", "=", old.project_id)
    .execute();
  const woken = new Set<string>();
  for (const topic of ["apps", "edge"] as const) wakeups.on(topic, (id) => id === old.project_id && woken.add(topic));
  assert.equal(await removeEndedPreviews(db, wakeups), 1);
  assert.equal(await removeEndedPreviews(db, wakeups), 0);
  await eventually(() => woken.size === 2, "its processes and its route are looked at");
  assert.notEqual((await rowOf(old.project_id)).deleted_at, null);
  assert.equal((await rowOf(other.project_id)).deleted_at, null);
  const next = opened(parent, "one");
  await db.updateTable("project").set({ purged_at: new Date() }).where("id", "=", old.project_id).execute();
  const again = await next;
  assert.deepEqual([again.slug, again.project_id === old.project_id], ["one--shop", false]);
});

test("a push gives a preview its time anew; the deletion of its project ends it", async () => {
  const parent = await newParent(await testOrganization(db, "anew"), "shop");
  const { project_id } = await opened(parent, "one");
  const soon = new Date(Date.now() + 60_000);
  await db.updateTable("project").set({ preview_expires_at: soon }).where("id", "=", project_id).execute();
  await opened(parent, "one");
  assert.ok(Date.parse((await rowOf(project_id)).preview_expires_at ?? "") > Date.now() + 71 * 3_600_000);
  await db.updateTable("project").set({ deleted_at: new Date() }).where("id", "=", parent.project_id).execute();
  assert.equal(await removeEndedPreviews(db, wakeups), 1);
  await assert.rejects(opened(parent, "two"), /deleted/);
});

test("first certificates of previews have a limit of their own", async () => {
  const parent = await newParent(await testOrganization(db, "signed"), "shop");
  const preview = await opened(parent, "one");
  const row = (hostname: string) => ({ hostname, challenge: "http-01" as const, zone: "apps.test", id: newId("crt") });
  const due = row(preview.hostname);
  const issued = row((await opened(parent, "two")).hostname);
  await db
    .insertInto("certificate")
    .values([due, { ...issued, first_issued_at: new Date() }])
    .execute();
  const counted = (await previewFirsts(db, due)) ?? assert.fail("it is a preview");
  assert.equal(counted.all, 1);
  assert.equal(whyNoPreview(counted, 2, Date.now()), null);
  assert.match(whyNoPreview(counted, 1, Date.now())?.detail ?? "", /served over HTTP\. A wildcard certificate/);
  assert.equal(await previewFirsts(db, row("shop.apps.test")), undefined);
});
