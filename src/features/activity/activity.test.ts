import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "../../../test/support/eventually.ts";
import { testBuild, testDeployment, testProject, testThings } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { readEvents } from "../../contract/client.ts";
import { routes } from "../../contract/routes.ts";
import type { Row } from "../../contract/table.ts";
import { newId } from "../../kit/ids.ts";
import { recordCrash } from "./activity.ts";
import { kindOf } from "./rules.ts";

const api = await sharedApi();
const org = await testOrganization(api.database.db, "home", { maxProjects: 100 });

interface Entry {
  readonly id: string;
  readonly at: string;
  readonly kind: string;
  readonly action: string;
  readonly summary: string;
  readonly actor: { readonly type: string; readonly name: string; readonly token_id: string | null };
  readonly project: string | null;
  readonly target: string | null;
  readonly link: string | null;
}

async function read(path: string, token = org.member) {
  const called = await api.call("GET", path, { token });
  assert.equal(called.status, 200, called.text);
  const entries = (called.body["timeline"] ?? called.body["activity"]) as Entry[];
  return { entries, next: called.body["next_cursor"] as string | null, text: called.text };
}

test("every change of the API has a kind", () => {
  for (const { activity } of routes as readonly Row[])
    if (activity !== null)
      assert.ok(kindOf(activity) !== "organization" || activity.startsWith("org."), `${activity} needs a kind`);
});

test("a timeline tells what was changed, what was deployed, what crashed and what failed, with who it was", async () => {
  const { db } = api.database;
  const project = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id: project.id };
  const path = `/v1/projects/${project.slug}`;
  const set = await api.call("PUT", `${path}/env/COLOUR`, { token: org.owner, body: { value: "canary-value" } });
  assert.equal(set.status, 204);
  const build_id = await testBuild(api.platform, owner, { status: "failed" });
  const failure = {
    stage: "build",
    code: "build_failed",
    summary: "It fell over.",
    hint: "",
    log_tail: ["canary-value"],
  };
  await db
    .updateTable("build")
    .set({ finished_at: new Date(), requested_by: "laptop", failure: JSON.stringify(failure) })
    .where("id", "=", build_id)
    .execute();
  const live = await testDeployment(api.platform, owner, { build_id, number: 7, status: "active" });
  const now = new Date();
  await db.updateTable("deployment").set({ activated_at: now, finished_at: now }).where("id", "=", live).execute();
  const crash = { out_of_memory: false, exit_code: 3, restarts: 1, next_start_in_ms: 1000 };
  await recordCrash(db, { ...owner, deployment: 7, process: "web", replica: 0, ...crash });
  await failedRun(owner);

  const { entries, text } = await read(`${path}/timeline`);
  const told = new Map(entries.map((entry) => [entry.action, entry]));
  assert.deepEqual(
    new Set(told.keys()),
    new Set(["env.set", "build.failed", "deployment.activated", "replica.crashed", "cron.run_failed"]),
  );
  assert.ok(!text.includes("canary-value"));
  assert.equal(told.get("env.set")?.actor.type, "token");
  assert.equal(told.get("env.set")?.target, "COLOUR");
  assert.equal(told.get("deployment.activated")?.summary, `Deployment 7 (push, cccccccc) went live`);
  assert.deepEqual(told.get("deployment.activated")?.actor, { type: "person", name: "laptop", token_id: null });
  assert.equal(told.get("build.failed")?.link, `/v1/builds/${build_id}`);
  assert.match(told.get("replica.crashed")?.summary ?? "", /exit code 3/);
  assert.equal(told.get("cron.run_failed")?.summary, "Cron job nightly failed: status 500");
  assert.ok(entries.every((entry) => entry.project === project.slug));
  const times = entries.map((entry) => entry.at);
  assert.deepEqual(times, times.toSorted().toReversed());

  const crons = await read(`${path}/timeline?kind=cron,replica`);
  assert.deepEqual(crons.entries.map((entry) => entry.kind).sort(), ["cron", "replica"]);
});

test("a rollback is told with who asked for it", async () => {
  const { db } = api.database;
  const project = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id: project.id };
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  const id = await testDeployment(api.platform, owner, { build_id, number: 2, status: "active" });
  const at = new Date();
  const changed = { trigger: "rollback", created_at: at, activated_at: at, finished_at: at } as const;
  await db.updateTable("deployment").set(changed).where("id", "=", id).execute();
  const asked = { action: "deployment.rollback_requested", target: id, actor_token_id: "tok_1", actor_name: "Ada" };
  await db
    .insertInto("activity")
    .values({
      ...owner,
      ...asked,
      id: newId("evt"),
      detail: JSON.stringify({ number: 2, branch: "trunk", changed_variables: ["COLOUR", "SHAPE"] }),
      created_at: at,
    })
    .execute();
  const { entries } = await read(`/v1/projects/${project.slug}/timeline?kind=deployment`);
  const live = entries.find((entry) => entry.action === "deployment.activated");
  assert.deepEqual(live?.actor, { type: "token", name: "Ada", token_id: "tok_1" });
  assert.equal(
    entries.find((entry) => entry.action === asked.action)?.summary,
    "Rollback requested; it is deployment 2; trunk still holds the newer commits; changed variables: COLOUR, SHAPE",
  );
});

test("a summary names builds by number and backups by time, never by id, and does not repeat the project", async () => {
  const { db } = api.database;
  const project = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id: project.id };
  const build = await testBuild(api.platform, owner, { status: "succeeded" });
  const things = await testThings(api.platform, org);
  await db.updateTable("backup").set({ created_at: "2026-05-04T03:02:01Z" }).where("id", "=", things.backup).execute();
  const { number } = await db.selectFrom("build").select("number").where("id", "=", build).executeTakeFirstOrThrow();
  const targets: readonly (readonly [string, string, string])[] = [
    ["build.source_uploaded", build, `Source uploaded: build ${number}`],
    ["verification.completed", things.backup, "Verification of the backup of 2026-05-04 03:02 UTC completed"],
    ["verification.failed", newId("bak"), "Verification of a backup failed"],
    ["build.odd", newId("bld"), "Build odd"],
    ["project.created", project.slug, "Project created"],
    ["project.created", "another", "Project created: another"],
  ];
  for (const [action, target] of targets)
    await db
      .insertInto("activity")
      .values({ ...owner, id: newId("evt"), action, target, actor_token_id: null, actor_name: "berth", detail: "{}" })
      .execute();
  const detail = { number: 3, trigger: "push", commit: "a".repeat(40) };
  for (const more of [{}, { reason: "it exited" }])
    await db
      .insertInto("activity")
      .values({
        ...{ ...owner, id: newId("evt"), action: "deployment.failed", target: "dep", actor_token_id: null },
        ...{ actor_name: "berth", detail: JSON.stringify({ ...detail, ...more }) },
      })
      .execute();
  const { entries } = await read(`/v1/projects/${project.slug}/timeline`);
  for (const [action, target, summary] of targets)
    assert.equal(entries.find((entry) => entry.action === action && entry.target === target)?.summary, summary);
  const failed = entries.filter(({ action }) => action === "deployment.failed").map(({ summary }) => summary);
  const named = "Deployment 3 (push, aaaaaaaa) failed";
  assert.deepEqual(failed.toSorted(), [named, `${named}: it exited`]);
});

test("pages follow each other without a gap or a repetition, also among entries of one moment", async () => {
  const { db } = api.database;
  const project = await testProject(api.platform, org);
  const at = new Date();
  for (let index = 0; index < 25; index += 1) {
    const row = { id: newId("evt"), org_id: org.id, project_id: project.id, actor_token_id: null, actor_name: "berth" };
    await db
      .insertInto("activity")
      .values({
        ...row,
        action: "domain.served",
        target: `${index}`,
        created_at: index < 15 ? at : new Date(at.getTime() + index),
      })
      .execute();
  }
  const seen: Entry[] = [];
  let cursor = "";
  for (let page = 0; page < 10; page += 1) {
    const { entries, next } = await read(`/v1/projects/${project.slug}/timeline?limit=4${cursor}`);
    seen.push(...entries);
    if (next === null) break;
    cursor = `&cursor=${next}`;
  }
  assert.equal(new Set(seen.map((entry) => entry.id)).size, 25);
  assert.equal(seen.length, 25);
  const refused = await api.call("GET", `/v1/projects/${project.slug}/timeline?cursor=x`, { token: org.member });
  assert.equal(refused.status, 400);
});

test("the organization's activity has tokens and keys too, and nothing of others", async () => {
  const { db } = api.database;
  const mine = await testOrganization(db, "mine");
  const other = await testOrganization(db, "other");
  const things = await testThings(api.platform, mine);
  const made = await api.call("POST", "/v1/api-tokens", { token: mine.owner, body: { name: "robot" } });
  assert.equal(made.status, 201);
  await api.call("DELETE", `/v1/ssh-keys/${things.key}`, { token: mine.owner });
  await api.call("DELETE", `/v1/projects/${things.project.slug}/env/COLOUR`, { token: mine.owner });
  const { entries, text } = await read("/v1/activity", mine.member);
  assert.deepEqual(
    entries.map((entry) => entry.action),
    ["env.deleted", "ssh_key.deleted", "token.created"],
  );
  assert.ok(!text.includes(made.body["token"] as string));
  assert.equal(entries.find((entry) => entry.action === "token.created")?.summary, 'Token "robot" created');
  assert.deepEqual((await read("/v1/activity", other.member)).entries, []);
});

test("changes name each noun of a project once behind a cursor, and nothing of other organizations", async () => {
  const { db } = api.database;
  const mine = await testOrganization(db, "streamed");
  const project = await testProject(api.platform, mine);
  const other = await testOrganization(db, "unheard");
  const read = async (after: string) =>
    (await api.call("GET", `/v1/activity/changes?after=${after}`, { token: mine.member })).body;
  const first = (await api.call("GET", "/v1/activity/changes", { token: mine.member })).body;
  assert.deepEqual([first["changes"], first["reset"]], [[], false]);
  await api.call("POST", "/v1/api-tokens", { token: other.owner, body: { name: "elsewhere" } });
  for (const key of ["ONE", "TWO"])
    await api.call("PUT", `/v1/projects/${project.slug}/env/${key}`, { token: mine.owner, body: { value: "x" } });
  // Transactions in other databases hold the cursor back, so the test waits until it has passed both changes.
  const written = await newestChange(mine.id);
  const next = await eventually(async () => {
    const body = await read(String(first["next_cursor"]));
    return Number(body["next_cursor"]) > written && body;
  }, "the cursor is past the changes");
  assert.deepEqual(next["changes"], [{ noun: "activity", project: project.slug }]);
  assert.deepEqual((await read(String(next["next_cursor"])))["changes"], []);
  assert.equal((await read("1"))["reset"], true);
});

/** The number of the transaction that wrote the organization's newest change. */
async function newestChange(orgId: string): Promise<number> {
  const { db } = api.database;
  const rows = await db.selectFrom("change").select("xid").where("org_id", "=", orgId).execute();
  return Math.max(...rows.map(({ xid }) => Number(xid)));
}

test("a cursor beyond all that the database can count is refused, and begins a stream anew", async () => {
  const org = await testOrganization(api.database.db, "far");
  const after = "9".repeat(19);
  const refused = await api.call("GET", `/v1/activity/changes?after=${after}`, { token: org.member });
  assert.deepEqual([refused.status, refused.body["code"]], [400, "invalid_request"]);
  const response = await fetch(`${api.baseUrl}/v1/activity/changes?follow=true`, {
    headers: { authorization: `Bearer ${org.member}`, "last-event-id": after },
  });
  let text = "";
  for await (const part of response.body ?? []) {
    text += Buffer.from(part).toString();
    if (text.includes("data:")) break;
  }
  assert.match(text, /event: changes/);
});

test("a stream of changes tells one as it happens, and goes on behind the last event", async () => {
  const mine = await testOrganization(api.database.db, "watched");
  const project = await testProject(api.platform, mine);
  const open = async (headers: Record<string, string>) => {
    const gone = new AbortController();
    const response = await fetch(`${api.baseUrl}/v1/activity/changes?follow=true`, {
      headers: { authorization: `Bearer ${mine.member}`, ...headers },
      signal: gone.signal,
    });
    return { events: readEvents(response.body!, () => {}), close: () => gone.abort() };
  };
  const set = (key: string) =>
    api.call("PUT", `/v1/projects/${project.slug}/env/${key}`, { token: mine.owner, body: { value: "x" } });
  const stream = await open({});
  const begin = (await stream.events.next()).value!;
  await set("WHILE_OPEN");
  const event = (await stream.events.next()).value!;
  assert.deepEqual(JSON.parse(event.data).changes, [{ noun: "activity", project: project.slug }]);
  stream.close();
  const resumed = await open({ "last-event-id": begin.id! });
  const missed = (await resumed.events.next()).value!;
  assert.deepEqual(JSON.parse(missed.data).changes, [{ noun: "activity", project: project.slug }]);
  resumed.close();
});

async function failedRun(owner: { org_id: string; project_id: string }): Promise<void> {
  const { db } = api.database;
  const job = {
    id: newId("job"),
    name: "nightly",
    schedule: "0 0 * * *",
    path: "/",
    next_run_at: new Date("2100-01-01"),
  };
  await db
    .insertInto("cron_job")
    .values({ ...owner, ...job })
    .execute();
  const run = { id: newId("run"), job_id: job.id, trigger: "schedule", scheduled_at: new Date() } as const;
  await db
    .insertInto("cron_run")
    .values({ ...owner, ...run, status: "failed", http_status: 500, finished_at: new Date() })
    .execute();
}

test("a deployment and a failed build that a token requested have the token as their actor", async () => {
  const { db } = api.database;
  const project = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id: project.id };
  const { id: token_id } = (await api.call("GET", "/v1/me", { token: org.member })).body["token"] as { id: string };
  for (const [number, status] of [
    [1, "succeeded"],
    [2, "failed"],
  ] as const) {
    const build_id = await testBuild(api.platform, owner, { status });
    await db
      .updateTable("build")
      .set({ token_id, requested_by: "agent", finished_at: new Date() })
      .where("id", "=", build_id)
      .execute();
    if (status === "failed") continue;
    const id = await testDeployment(api.platform, owner, { build_id, number, status: "active" });
    await db
      .updateTable("deployment")
      .set({ activated_at: new Date(), finished_at: new Date() })
      .where("id", "=", id)
      .execute();
  }
  const { entries } = await read(`/v1/projects/${project.slug}/timeline`);
  assert.deepEqual(
    entries.map(({ action, actor }) => [action, actor.type, actor.name, actor.token_id]),
    [
      ["build.failed", "token", "agent", token_id],
      ["deployment.activated", "token", "agent", token_id],
    ],
  );
});
