import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { decideBy, quietNotifier } from "../../../test/support/approvals.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { testBuild, testDeployment, testProject } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization, testToken } from "../../../test/support/test-platform.ts";
import { promotionSeen } from "../rehearsals/rehearsals.ts";
import { rehearsePromotion, rehearsePromotions } from "./rehearse-promotion.ts";

const api = await sharedApi({ ports: { notifiers: [quietNotifier] } });
const { db, wakeups } = api.platform;
let organizations = 0;

/** A project with a preview that serves, and the approval that an agent asks for to promote it. */
async function asked(agents: "deploy" | "preview") {
  const org = await testOrganization(db, `promotes-${(organizations += 1)}`);
  const project = await testProject(api.platform, org, "shop");
  const preview = await testProject(api.platform, org, "fix--shop");
  const change = { preview_of: project.id, git_branch: "fix", preview_expires_at: new Date(Date.now() + 3_600_000) };
  await db.updateTable("project").set(change).where("id", "=", preview.id).execute();
  await db.updateTable("project").set({ agents }).where("id", "=", project.id).execute();
  const build_id = await testBuild(api.platform, { org_id: org.id, project_id: preview.id }, { status: "succeeded" });
  await testDeployment(
    api.platform,
    { org_id: org.id, project_id: preview.id },
    { build_id, number: 1, status: "active" },
  );
  const agent = await testToken(db, org.id, { role: "owner", approval_mode: true });
  const promote = () => api.call("POST", "/v1/projects/shop/previews/fix/promote", { token: agent.text });
  const called = await promote();
  const { id } = called.body["approval"] as { id: string };
  const builds = () =>
    db.selectFrom("build").selectAll().where("project_id", "=", project.id).orderBy("number").execute();
  return { org_id: org.id, project_id: project.id, id, build_id, agent, promote, builds };
}

test("a person promotes only what they looked at, and who lost a project sees no more of it", async () => {
  const { org_id, build_id, id, agent, ...key } = await asked("preview");
  const { text: person } = await testToken(db, org_id, { role: "owner" });
  const promote = (expected_commit: string) =>
    api.call("POST", "/v1/projects/shop/previews/fix/promote", { token: person, body: { expected_commit } });
  const { commit } = await db.selectFrom("build").select("commit").where("id", "=", build_id).executeTakeFirstOrThrow();
  const swapped = await promote("f".repeat(40));
  assert.deepEqual([swapped.status, swapped.body["code"]], [409, "conflict"]);
  assert.match(String(swapped.body["error"]), /serves commit \w{8} now, not ffffffff/);
  assert.deepEqual(await key.builds(), []);
  const review = async () => (await api.call("GET", `/v1/approvals/${id}`, { token: agent.text })).body["review"];
  assert.notEqual(await review(), null);
  await db.updateTable("api_token").set({ project_ids: [] }).where("id", "=", agent.id).execute();
  await wakeups.send(db, "tokens");
  await eventually(async () => (await review()) === null, "the review is gone");
  assert.equal((await promote(commit)).status, 201);
});

test("a promotion is rehearsed once if the token could deploy itself, else when a person says so", async () => {
  const [mayDeploy, mayNot] = [await asked("deploy"), await asked("preview")];
  assert.equal(await rehearsePromotions(db, wakeups, new Date()), 1);
  assert.equal(await rehearsePromotions(db, wakeups, new Date()), 0);
  const [build, ...more] = await mayDeploy.builds();
  assert.deepEqual(
    [more.length, build?.rehearse_only, build?.approval_id, build?.promoted_from, build?.origin],
    [0, true, mayDeploy.id, mayDeploy.build_id, "push"],
  );
  assert.deepEqual(await mayNot.builds(), []);
  for (let times = 0; times < 2; times += 1) await rehearsePromotion(db, wakeups, mayNot);
  assert.equal((await mayNot.builds()).length, 1);
});

test("a rehearsal that was interrupted may be asked for again, one with a result may not", async () => {
  const { builds, ...key } = await asked("preview");
  await rehearsePromotion(db, wakeups, key);
  await db.updateTable("build").set({ status: "failed" }).where("approval_id", "=", key.id).execute();
  await rehearsePromotion(db, wakeups, key);
  assert.equal((await builds()).length, 2);
  const rehearsed = (await builds())[1] ?? assert.fail();
  await rehearsedAt(key, rehearsed.id);
  await rehearsePromotion(db, wakeups, key);
  assert.equal((await builds()).length, 2);
});

test("a person who has seen the rehearsal is not asked again; one who decided before it is", async () => {
  for (const isSeen of [true, false]) {
    const { builds, promote, ...key } = await asked("preview");
    await rehearsePromotion(db, wakeups, key);
    const [rehearsed] = await builds();
    if (isSeen) await rehearsedAt(key, rehearsed?.id ?? "");
    await decideBy(api, key.id, "approved");
    if (!isSeen) await rehearsedAt(key, rehearsed?.id ?? "");
    const promoted = await promote();
    assert.equal(promoted.status, 201, promoted.text);
    const build_id = String(promoted.body["build_id"]);
    const seen = await promotionSeen(db, { org_id: key.org_id, build_id });
    assert.equal(seen?.id, isSeen ? key.id : undefined);
  }
});

/** Ends the rehearsal of a build as passed, at this moment. */
async function rehearsedAt(owner: { org_id: string; project_id: string }, build_id: string): Promise<void> {
  const { org_id, project_id } = owner;
  await db.updateTable("build").set({ status: "succeeded" }).where("id", "=", build_id).execute();
  const key = { org_id, project_id };
  const deployment_id = await testDeployment(api.platform, key, { build_id, number: 1, status: "failed" });
  await db
    .updateTable("deployment")
    .set({ status: "superseded", rehearse_only: true })
    .where("id", "=", deployment_id)
    .execute();
  const report = JSON.stringify({ seconds: 1, exit_code: 0, tables: [], further_tables: 0 });
  const row = { ...key, deployment_id, status: "passed", report, cleared: true } as const;
  await db
    .insertInto("rehearsal")
    .values({ ...row, finished_at: sql`clock_timestamp()` })
    .execute();
}
