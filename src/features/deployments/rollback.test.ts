import assert from "node:assert/strict";
import { test } from "node:test";
import { testBuild, testDeployment, testProject } from "../../../test/support/fixtures.ts";
import { repositoriesDouble } from "../../../test/support/port-doubles.ts";
import { sharedApi, testOrganization, testToken } from "../../../test/support/test-platform.ts";
import { variablesOf } from "../env/env.ts";
import { activate, restartDeployment, rollBack, type TakenDeployment } from "./deployments.ts";
import { newerBranch } from "./handlers.ts";

/** The files of commits, by commit and path; none has others. */
const files: Record<string, string> = {};
const read = async (_: string, commit: string, { path }: { path: string }) => {
  const text = files[`${commit} ${path}`];
  return text === undefined ? null : Buffer.from(text);
};
const api = await sharedApi({ ports: { repositories: repositoriesDouble({ read }) } });
const org = await testOrganization(api.database.db, "rollback");

/** A project whose deployments become active as soon as they exist. */
async function history() {
  const { db } = api.database;
  const { id: project_id } = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id };
  const numbers = new Map<string, number>();
  const goLive = async (id: string, number: number) => {
    await db
      .updateTable("deployment")
      .set({ status: "retired" })
      .where("project_id", "=", project_id)
      .where("status", "=", "active")
      .execute();
    await db
      .updateTable("deployment")
      .set({ status: "active", activated_at: new Date() })
      .where("id", "=", id)
      .execute();
    numbers.set(id, number);
  };
  let pushed = 0;
  const take = async (made: ReturnType<typeof rollBack | typeof restartDeployment>) => {
    const result = await made;
    if (result.outcome !== "made") return result.outcome;
    await goLive(result.id, result.number);
    pushed = result.number;
    const row = await db
      .selectFrom("deployment")
      .select("restored_from")
      .where("id", "=", result.id)
      .executeTakeFirstOrThrow();
    return row.restored_from === null ? null : numbers.get(row.restored_from);
  };
  return {
    async push() {
      const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
      pushed += 1;
      await goLive(await testDeployment(api.platform, owner, { build_id, number: pushed, status: "pending" }), pushed);
    },
    changeVariables: () =>
      take(db.transaction().execute((tx) => restartDeployment(api.platform, tx, owner, "variables"))),
    /** Rolls back; resolves with the number of the deployment. */
    rollBack: () => take(db.transaction().execute((tx) => rollBack(api.platform, tx, owner))),
  };
}

test("each rollback goes one further back, until there is nothing", async () => {
  const project = await history();
  for (let count = 0; count < 3; count += 1) await project.push();
  assert.deepEqual([await project.rollBack(), await project.rollBack(), await project.rollBack()], [2, 1, "nothing"]);
});

test("variables that are changed after a rollback are rolled back to what served before, not to what was left behind", async () => {
  const project = await history();
  await project.push();
  await project.push();
  assert.equal(await project.rollBack(), 1);
  assert.equal(await project.changeVariables(), null);
  assert.deepEqual([await project.rollBack(), await project.rollBack()], [1, "nothing"]);
});

test("a push after a rollback is rolled back to what the rollback had brought back", async () => {
  const project = await history();
  await project.push();
  await project.push();
  assert.equal(await project.rollBack(), 1);
  await project.push();
  assert.deepEqual([await project.rollBack(), await project.rollBack()], [1, "nothing"]);
});

test("there is no rollback while another deployment is waiting or starting", async () => {
  const { id: project_id, slug } = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id };
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  const retired = await testDeployment(api.platform, owner, { build_id, number: 1, status: "retired" });
  await testDeployment(api.platform, owner, { build_id, number: 2, status: "active" });
  const coming = await testDeployment(api.platform, owner, { build_id, number: 3, status: "pending" });
  const { db } = api.database;
  await db.updateTable("deployment").set({ activated_at: new Date() }).where("id", "=", retired).execute();
  for (const status of ["pending", "starting"] as const) {
    await db.updateTable("deployment").set({ status }).where("id", "=", coming).execute();
    const refused = await api.call("POST", `/v1/projects/${slug}/rollback`, { token: org.owner });
    assert.deepEqual([refused.status, refused.body["code"]], [409, "deploy_in_progress"]);
  }
  const { length } = await db.selectFrom("deployment").select("id").where("project_id", "=", project_id).execute();
  assert.equal(length, 3);
});

test("a rollback names the branch that holds newer commits, and none when only variables differ", async () => {
  const { platform } = api;
  const { db } = api.database;
  const { id: project_id } = await testProject(platform, org);
  const owner = { org_id: org.id, project_id };
  const deployed = async (number: number, status: "active" | "retired") => {
    const commit = `${number}`.repeat(40);
    const build_id = await testBuild(platform, owner, { status: "succeeded" });
    const id = await testDeployment(platform, owner, { build_id, number, status });
    await db.updateTable("build").set({ commit }).where("id", "=", build_id).execute();
    await db.updateTable("deployment").set({ commit, activated_at: new Date() }).where("id", "=", id).execute();
    return id;
  };
  const first = await deployed(1, "retired");
  const project = { key: owner, deploy_branch: "main" };
  const named = (id: string) => db.transaction().execute((tx) => newerBranch(tx, project, id));
  assert.equal(await named(first), null);
  const second = await deployed(2, "active");
  assert.deepEqual([await named(first), await named(second)], ["main", null]);
});

test("the variables of the chosen deployment become the project's when it goes live, and the answer names what changed", async () => {
  const { db, platform } = { db: api.database.db, platform: api.platform };
  const { id: project_id, slug } = await testProject(platform, org);
  const owner = { org_id: org.id, project_id };
  const set = (key: string, body: object) =>
    api.call("PUT", `/v1/projects/${slug}/env/${key}`, { token: org.owner, body });
  const goLive = async (id: string) => {
    await db.updateTable("deployment").set({ status: "starting" }).where("id", "=", id).execute();
    const lease = { table: "deployment", id, owner: "test", fence: 0 } as const;
    const taken = { ...owner, id, branch: "main", trigger: "rollback" } as TakenDeployment;
    await db.transaction().execute((tx) => activate(tx, lease, taken));
  };
  const build_id = await testBuild(platform, owner, { status: "succeeded" });
  await goLive(await testDeployment(platform, owner, { build_id, number: 1, status: "pending" }));
  for (const values of [
    { COLOUR: "green", KEPT: "same" },
    { COLOUR: "blue", SHAPE: "round" },
  ]) {
    for (const [key, value] of Object.entries(values)) assert.equal((await set(key, { value })).status, 204);
    const made = await db.transaction().execute((tx) => restartDeployment(platform, tx, owner, "variables"));
    assert.equal(made.outcome, "made");
    if (made.outcome === "made") await goLive(made.id);
  }
  const compare = async (query: string) =>
    (await api.call("GET", `/v1/projects/${slug}/compare${query}`, { token: org.member })).body;
  const { from, to, ...differences } = await compare("");
  assert.deepEqual([(from as { number: number }).number, (to as { number: number }).number], [2, 3]);
  assert.deepEqual(differences, {
    files: [],
    variables: { added: ["SHAPE"], removed: [], changed: ["COLOUR"] },
    settings: [],
  });
  assert.deepEqual((await compare("?from=3&to=1"))["variables"], {
    added: [],
    removed: ["COLOUR", "KEPT", "SHAPE"],
    changed: [],
  });
  assert.equal((await compare("?from=1&to=99"))["code"], "not_found");
  assert.deepEqual(await compare("/lines?build=1"), { commits: [], files: [], complete: true });
  assert.match(String((await compare("/lines?build=99"))["error"]), /^There is no such build/);
  assert.equal((await compare("/lines?build=1&to=1"))["code"], "invalid_request");
  const back = await db.transaction().execute((tx) => rollBack(platform, tx, owner, 2));
  assert.ok(back.outcome === "made");
  assert.deepEqual([back.from, back.to, back.changed_variables], [3, 2, ["COLOUR", "SHAPE"]]);
  const changedAt = async (key: string) => {
    const query = db.selectFrom("project_variable").select("updated_at").where("project_id", "=", project_id);
    return (await query.where("key", "=", key).executeTakeFirstOrThrow()).updated_at;
  };
  const kept = await changedAt("KEPT");
  assert.equal((await variablesOf(db, platform.vault, owner))["COLOUR"], "blue");
  await set("LATER", { value: "set meanwhile" });
  await goLive(back.id);
  assert.deepEqual(await variablesOf(db, platform.vault, owner), {
    COLOUR: "green",
    KEPT: "same",
    LATER: "set meanwhile",
  });
  assert.equal(await changedAt("KEPT"), kept);
  assert.equal((await set("COLOUR", { from_deployment: 3 })).status, 204);
  assert.equal((await variablesOf(db, platform.vault, owner))["COLOUR"], "blue");
  const unknown = await set("COLOUR", { from_deployment: 9 });
  assert.deepEqual([unknown.status, unknown.body["error"]], [404, "There is no deployment 9."]);
  for (const body of [{}, { value: "x", from_deployment: 3 }]) assert.equal((await set("COLOUR", body)).status, 400);
  const none = await db.transaction().execute((tx) => rollBack(platform, tx, owner, 9));
  assert.equal(none.outcome, "nothing");
});

test("where agents deploy to previews only, they roll back to nothing that no person has seen", async () => {
  const { db } = api.database;
  const agent = await testToken(db, org.id, { role: "owner", approval_mode: true });
  const { id: project_id, slug } = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id };
  const builds: string[] = [];
  for (const number of [1, 2, 3, 4]) {
    const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
    builds.push(build_id);
    const status = number === 4 ? "active" : "retired";
    const id = await testDeployment(api.platform, owner, { build_id, number, status });
    await db.updateTable("deployment").set({ activated_at: new Date() }).where("id", "=", id).execute();
  }
  const [byPerson = "", byAgent = "", promoted = ""] = builds;
  await db.updateTable("build").set({ copies_data: true }).where("id", "in", [byAgent, promoted]).execute();
  await db.updateTable("build").set({ promoted_from: byPerson }).where("id", "=", promoted).execute();
  const rollBackTo = (deployment: number, token = agent.text) =>
    api.call("POST", `/v1/projects/${slug}/rollback?dry_run=true`, { token, body: { deployment } });
  assert.equal((await rollBackTo(2)).status, 200);
  await db.updateTable("project").set({ agents: "preview" }).where("id", "=", project_id).execute();
  const refused = await rollBackTo(2);
  assert.deepEqual([refused.status, refused.body["code"]], [403, "forbidden"], refused.text);
  for (const allowed of [await rollBackTo(1), await rollBackTo(3), await rollBackTo(2, org.owner)])
    assert.equal(allowed.status, 200, allowed.text);
});

test("where agents deploy to previews only, they bring back no variable that a person took away", async () => {
  const { db, vault } = { db: api.database.db, vault: api.platform.vault };
  const agent = await testToken(db, org.id, { role: "owner", approval_mode: true });
  const { id: project_id, slug } = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id };
  const own = { GREETING: "hello" };
  for (const [number, status, variables] of [
    [1, "retired", own],
    [2, "retired", { ...own, NODE_OPTIONS: "--require /agent.js" }],
    [3, "active", own],
  ] as const) {
    const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
    const id = await testDeployment(api.platform, owner, { build_id, number, status });
    const sealed_variables = vault.seal(project_id, `deployment:${id}`, JSON.stringify(variables));
    const change = { activated_at: new Date(), sealed_variables };
    await db.updateTable("deployment").set(change).where("id", "=", id).execute();
  }
  const path = `/v1/projects/${slug}`;
  const set = (key: string, body: object, token: string) =>
    api.call("PUT", `${path}/env/${key}?dry_run=true`, { token, body });
  assert.equal(
    (await api.call("PUT", `${path}/env/GREETING`, { token: org.owner, body: { value: "hello" } })).status,
    204,
  );
  const ways = [
    (token: string) => api.call("POST", `${path}/rollback?dry_run=true`, { token, body: { deployment: 2 } }),
    (token: string) => set("NODE_OPTIONS", { from_deployment: 2 }, token),
  ];
  for (const way of ways) assert.equal((await way(agent.text)).status, 200);
  await db.updateTable("project").set({ agents: "preview" }).where("id", "=", project_id).execute();
  for (const way of ways) {
    const refused = await way(agent.text);
    assert.deepEqual([refused.status, refused.body["code"]], [403, "forbidden"], refused.text);
    assert.equal((await way(org.owner)).status, 200);
  }
  const allowed = await api.call("POST", `${path}/rollback?dry_run=true`, {
    token: agent.text,
    body: { deployment: 1 },
  });
  assert.equal(allowed.status, 200, allowed.text);
});

test("where agents deploy to previews only, they bring back no mask that left more of the data", async () => {
  const { db } = api.database;
  const agent = await testToken(db, org.id, { role: "owner", approval_mode: true });
  const { id: project_id, slug } = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id };
  const masks = [undefined, "update people set email = ''", "update people set email = '', phone = ''"];
  for (const [index, mask] of [...masks, masks[2]].entries()) {
    const commit = String(index + 1).repeat(40);
    if (mask !== undefined)
      Object.assign(files, { [`${commit} berth.json`]: '{"mask": "mask.sql"}', [`${commit} mask.sql`]: mask });
    const build_id = await testBuild(api.platform, owner, { status: "succeeded", commit });
    const status = index === masks.length ? "active" : "retired";
    const id = await testDeployment(api.platform, owner, { build_id, number: index + 1, status, commit });
    await db.updateTable("deployment").set({ activated_at: new Date() }).where("id", "=", id).execute();
  }
  const statusTo = async (deployment: number, token = agent.text) =>
    (await api.call("POST", `/v1/projects/${slug}/rollback?dry_run=true`, { token, body: { deployment } })).status;
  assert.equal(await statusTo(2), 200);
  await db.updateTable("project").set({ agents: "preview" }).where("id", "=", project_id).execute();
  assert.deepEqual([await statusTo(1), await statusTo(2), await statusTo(3)], [200, 403, 200]);
  assert.equal(await statusTo(2, org.owner), 200);
});
