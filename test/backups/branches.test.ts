// Drawn with other data files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { requestBranch } from "../../src/features/branches/branches.ts";
import { databaseFor, databaseOf, specOf } from "../../src/features/database/database.ts";
import { archivesTask } from "../../src/reconcile/archives/archives-task.ts";
import { branchesTask } from "../../src/reconcile/branches/branches-task.ts";
import { startBackupPlatform, type BackupPlatform, type TestProject } from "../support/backups.ts";
import { cliUser, type CliUser } from "../support/cli.ts";
import { eventually } from "../support/eventually.ts";
import { testBuild, testDeployment, testProject } from "../support/fixtures.ts";
import { platformBeside } from "../support/platform-double.ts";
import { repositoriesDouble } from "../support/port-doubles.ts";
import { testOrganization, testToken } from "../support/test-platform.ts";

const withoutPsql = existsSync("/usr/bin/psql") ? false : "psql is not installed";

describe("branches of a database", { skip: missingPart || withoutPsql }, () => {
  let running: BackupPlatform;
  let project: TestProject;
  let user: CliUser;
  let aheadMs = 0;
  let isFull = false;
  let copyBytes = 1e9;
  const files = new Map<string, string>();

  before(async () => {
    running = await startBackupPlatform();
    await running.startTask(() => archivesTask(running.platform));
    await running.startTask((wake) => branchesTask(platform(), wake));
    project = await running.project();
    await project.query("create table people (id int primary key, email text)");
    await project.query("insert into people select n, n || '@example.com' from generate_series(1, 1000) n");
    user = await cliUser({ url: running.api.baseUrl, token: running.org.owner });
  });
  after(async () => {
    await user?.[Symbol.asyncDispose]();
    await running?.close();
  });

  const branches = {
    ...{ minutes: 60, perPlatform: 50, maskMs: 500 },
    get copyBytes() {
      return copyBytes;
    },
  };
  const platform = () =>
    platformBeside(running.api, {
      owner: running.platform.owner,
      clock: { now: () => new Date(Date.now() + aheadMs) },
      settings: { branches },
      ports: {
        ...running.platform.ports,
        dataDisk: {
          ...running.platform.ports.dataDisk,
          observe: async () => ({
            total_bytes: 1e12,
            available_bytes: 1e12,
            is_low: isFull,
            is_short: isFull,
            is_full: isFull,
          }),
        },
        repositories: repositoriesDouble({
          read: async (_, _commit, { path }) => {
            const text = files.get(path);
            return text === undefined ? null : Buffer.from(text);
          },
        }),
      },
    });
  const of = (rest = "") => `/v1/projects/${project.slug}/database/branches${rest}`;
  const create = (body: object, token = running.org.owner) => running.api.call("POST", of(), { token, body });
  const made = async (body: { readonly name: string } & Record<string, unknown>) => {
    const asked = await create(body);
    assert.equal(asked.status, 201, asked.text);
    return eventually(async () => {
      const { body: now, text } = await running.call("GET", of(`/${body.name}`));
      assert.notEqual(now["status"], "failed", text);
      return now["status"] === "ready" && now;
    }, `${body.name} is ready`);
  };
  const remove = async (name: string) => assert.equal((await running.call("DELETE", of(`/${name}`))).status, 204);
  const wake = () => running.platform.wakeups.send(running.platform.db, "branches");
  const nothingLeft = () =>
    eventually(async () => {
      await wake();
      const rows = await running.platform.db.selectFrom("database_branch").select("id").execute();
      const instances = (await running.host.list()).filter((id) => id.startsWith("dbb_"));
      return rows.length === 0 && instances.length === 0;
    }, "no branch is left");
  const psql = (name: string, sql: string) =>
    user.start(["db", "psql", "--branch", name, "-p", project.slug, "--", "-XAtc", sql]).ended;

  it("shows what is committed, changes alone, and is reached by psql, browser, statement and dump", async () => {
    const branch = await made({ name: "now" });
    assert.equal(branch["masked"], false);
    assert.ok(!/password|postgres:/.test(JSON.stringify(branch)));
    assert.equal((await psql("now", "delete from people where id > 10 returning 1")).exitCode, 0);
    await project.query("insert into people values (0, 'later')");
    assert.equal((await psql("now", "select count(*), min(id) from people")).stdout, "10|1\n");
    assert.equal((await project.query("select count(*)::int as n from people"))[0]?.["n"], 1001);
    await project.query("delete from people where id = 0");
    const data = `/v1/projects/${project.slug}/data/tables`;
    const rows = await running.call("GET", `${data}/public/people?branch=now`);
    assert.deepEqual([rows.body["total"], (await running.call("GET", data)).status], [10, 200]);
    const read = { sql: "select count(*)::int from people", branch: "now" };
    const answer = await running.call("POST", `/v1/projects/${project.slug}/database/query`, read);
    assert.deepEqual(answer.body["rows"], [[10]], answer.text);
    const dump = await user.start(["db", "dump", "--format", "plain", "--branch", "now", "-p", project.slug]).ended;
    assert.equal(dump.stdout.match(/@example\.com/g)?.length, 10, dump.stderr);
    for (const path of [`${data}?branch=none`, `${data}?branch=now&database=other`])
      assert.equal((await running.call("GET", path)).status, 404, path);
    await remove("now");
    assert.equal((await running.call("GET", of("/now"))).status, 404);
    await nothingLeft();
  });

  it("shows any moment of the archive", async () => {
    const archive = () => running.call("GET", `/v1/projects/${project.slug}/database/archive`);
    await eventually(async () => {
      await running.platform.wakeups.send(running.platform.db, "archives");
      return (await archive()).body["status"] === "healthy";
    }, "the archive has a copy");
    await project.query("create table orders as select 1 as id");
    const [{ at } = {}] = await project.query("select clock_timestamp() as at");
    const moment = new Date((at as Date).getTime() + 1).toISOString();
    await sleep(10);
    await project.query("drop table orders");
    const branch = await made({ name: "past", at: moment });
    assert.equal(branch["shows"], moment);
    assert.equal((await psql("past", "insert into orders values (2) returning id")).stdout.split("\n")[0], "2");
    const outside = await create({ name: "before", at: "365d" });
    assert.deepEqual([outside.status, outside.body["code"]], [409, "target_outside_window"]);
    assert.equal((await create({ name: "before", before_deployment: 7 })).status, 404);
    await remove("past");
    const owner = { org_id: running.org.id, project_id: project.id };
    const build_id = await testBuild(running.api.platform, owner, { status: "succeeded" });
    const id = await testDeployment(running.api.platform, owner, { build_id, number: 9, status: "retired" });
    await running.platform.db.updateTable("deployment").set({ created_at: moment }).where("id", "=", id).execute();
    assert.equal((await made({ name: "earlier", before_deployment: 9 }))["shows"], moment);
    assert.equal((await psql("earlier", "select id from orders")).stdout, "1\n");
    await remove("earlier");
  });

  it("is masked by the deployed commit before anybody reaches it, or is destroyed with the statement's error", async () => {
    assert.equal((await create({ name: "none", mask: true })).body["code"], "conflict");
    const owner = { org_id: running.org.id, project_id: project.id };
    const build_id = await testBuild(running.api.platform, owner, { status: "succeeded" });
    await testDeployment(running.api.platform, owner, { build_id, number: 1, status: "active" });
    files.set("berth.json", '{"mask": "db/mask.sql"}');
    files.set("db/mask.sql", "update people set email = 'masked'");
    const masked = await made({ name: "masked", mask: true });
    assert.equal(masked["masked"], true);
    assert.equal((await psql("masked", "select distinct email from people")).stdout, "masked\n");
    await remove("masked");
    for (const [sql, message] of [
      ["update persons set email = 'masked'", /relation "persons" does not exist/],
      ["select pg_sleep(600)", /took longer than 0\.5 s/],
    ] as const) {
      files.set("db/mask.sql", sql);
      const { body } = await create({ name: "broken", mask: true });
      assert.equal(body["code"], "mask_failed");
      assert.match(String(body["error"]), message);
    }
    files.delete("db/mask.sql");
    assert.match(String((await create({ name: "broken", mask: true })).body["error"]), /no file db\/mask\.sql/);
    const { body } = await running.call("GET", of("/broken"));
    assert.deepEqual([body["status"], (body["failure"] as { code: string }).code], ["failed", "mask_failed"]);
    await remove("broken");
    await nothingLeft();
  });

  it("ends by itself, and with its project", async () => {
    await made({ name: "short", ttl_minutes: 5 });
    const other = await running.project();
    await other.query("create table t (id int)");
    const path = `/v1/projects/${other.slug}/database/branches`;
    assert.equal((await running.call("POST", path, { name: "with-it" })).status, 201);
    assert.equal((await running.call("DELETE", `/v1/projects/${other.slug}`)).status, 200);
    aheadMs = 6 * 60_000;
    await nothingLeft();
    aheadMs = 0;
  });

  it("has limits: five for a project, a size to copy, names, and the other tenants' projects are missing", async () => {
    for (const name of ["", "A", "a_b", "-a", "a".repeat(64), "a/b"])
      assert.equal((await create({ name })).status, 400, name);
    assert.equal((await create({ name: "both", at: "1m", before_deployment: 1 })).status, 400);
    for (const name of ["one", "two", "three", "four", "five"]) await made({ name });
    const sixth = await create({ name: "six" });
    assert.deepEqual([sixth.status, sixth.body["code"]], [409, "branch_limit"]);
    await remove("five");
    assert.equal((await create({ name: "one" })).body["code"], "conflict");
    const stranger = await testOrganization(running.api.database.db, "stranger");
    for (const method of ["GET", "DELETE"])
      assert.equal((await running.api.call(method, of("/one"), { token: stranger.owner })).status, 404);
    assert.equal((await create({ name: "theirs" }, stranger.owner)).status, 404);
    copyBytes = 1024;
    const large = await create({ name: "large" });
    copyBytes = 1e9;
    if (large.status !== 201) {
      assert.equal(large.body["code"], "copy_too_large");
      assert.match(String(large.body["error"]), /MiB, which would take about \d+ s to copy; at most 1\.0 KiB/);
    }
    for (const name of ["one", "two", "three", "four", "large"]) await remove(name);
    await nothingLeft();
  });

  it("of a token in approval mode needs a person where it shows live data, and to be deleted before it ends", async () => {
    const agent = await testToken(running.api.database.db, running.org.id, { role: "member", approval_mode: true });
    assert.equal((await create({ name: "agents" }, agent.text)).body["code"], "approval_required");
    files.set("db/mask.sql", "update people set email = 'masked'");
    assert.equal((await create({ name: "agents", mask: true }, agent.text)).status, 201);
    const removed = await running.api.call("DELETE", of("/agents"), { token: agent.text });
    assert.equal(removed.body["code"], "approval_required");
    await remove("agents");
    await nothingLeft();
  });

  it("is the database of another project's deployments, and survives restarts and a full disk", async () => {
    const { db, vault } = running.platform;
    const consumer = await testProject(running.api.platform, running.org);
    const owner = { org_id: running.org.id, project_id: project.id };
    const wanted = { ...owner, name: "preview-1", at: null, isMasked: false, used_by: consumer.id };
    const asked = await db.transaction().execute((tx) => requestBranch(running.api.platform, tx, wanted));
    assert.equal(asked.outcome, "requested");
    const branch = await eventually(() => databaseOf(db, running.org.id, project.id, "preview-1"), "it is ready");
    assert.equal((await running.call("GET", of("/preview-1"))).body["expires_at"], null);
    aheadMs = 365 * 24 * 3_600_000;
    await wake();
    const reach = { endpointFor: (server: { host: string; port: number }) => server, tlsOf: () => null };
    const deployment = { id: "dep_none", org_id: running.org.id, project_id: consumer.id };
    const { env } = await databaseFor(db, vault, deployment, reach);
    assert.equal(env["PGPASSWORD"], specOf(vault, branch).password);
    assert.notEqual(env["PGPASSWORD"], specOf(vault, await project.row()).password);
    assert.equal(Number(env["PGPORT"]), branch.port);
    await running.host.stop(branch.id);
    const runs = (state: string) =>
      eventually(async () => {
        await wake();
        const seen = await running.host.observe(specOf(vault, branch)).catch(() => undefined);
        return seen?.state === state;
      }, `it is ${state}`);
    await runs("running");
    isFull = true;
    await runs("stopped");
    isFull = false;
    await runs("running");
    aheadMs = 0;
    assert.equal((await running.call("DELETE", `/v1/projects/${consumer.slug}`)).status, 200);
    await nothingLeft();
    assert.deepEqual(
      readdirSync(running.hostOptions.dir).filter((name) => name.startsWith("dbb_")),
      [],
    );
  });
});
