import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { after, before, test } from "node:test";
import { sql } from "kysely";
import { list } from "tar";
import { createLocalRepositories } from "../../src/adapters/repositories-local/local-repositories.ts";
import { admitCode, createGitGate, requireAdmittedCode } from "../../src/daemon/git-gate.ts";
import { createGitServers, type GitServers } from "../../src/git/git-servers.ts";
import { silentLog } from "../../src/kit/log.ts";
import { formatIdentity, ownIdentity, readProcessFile } from "../../src/kit/processes.ts";
import { until } from "../../src/kit/until.ts";
import type { PlanRequest } from "../../src/ports/builder.ts";
import type { Repositories } from "../../src/ports/repositories.ts";
import { killProcesses, listProcesses } from "../e2e/processes.ts";
import { guardMs } from "../support/eventually.ts";
import { testBuild, testDeployment, testProject } from "../support/fixtures.ts";
import { commitFile, git, makeKey, makeWorkTree, tryGit } from "../support/git-servers.ts";
import { peopleAt } from "../support/people.ts";
import { builderDouble } from "../support/port-doubles.ts";
import {
  testApi,
  testDiskLimits,
  testOrganization,
  testToken,
  type TestApi,
  type TestOrganization,
} from "../support/test-platform.ts";

let api: TestApi;
let root: string;
let org: TestOrganization;
let repositories: Repositories;
let servers: GitServers;
let isolation: "namespaces" | "none" = "namespaces";
const http = createServer((req, res) => void servers.httpHandler(req, res));

before(async () => {
  api = await testApi();
  root = await mkdtemp(join(tmpdir(), "berth-gate-"));
  org = await testOrganization(api.database.db, "acme");
  repositories = await createLocalRepositories({ dir: join(root, "repositories"), log: silentLog });
  const { db, wakeups, ports } = api.platform;
  const gate = createGitGate({
    ...{ db, wakeups, repositories, builder: readingBuilder, logStore: ports.logStore, dataDisk: ports.dataDisk },
    owner: formatIdentity(ownIdentity()),
    treeLimits: { entries: 5, bytes: 1024 ** 2 },
    diskLimits: testDiskLimits,
    vault: api.platform.vault,
    clock: api.platform.clock,
    ports: api.platform.ports,
    settings: api.platform.settings,
    appsDomain: "apps.test",
    appUrl: (hostname) => `http://${hostname}`,
    previews: { hours: 72, perProject: 5 },
    admits: (organization) => isolation === "namespaces" || admitCode([], false)(organization),
  });
  const ssh = { host: "127.0.0.1", port: 0 };
  const hostKeyFile = join(root, "ssh", "host");
  servers = await createGitServers({ gate, repositories, dir: join(root, "git"), hostKeyFile, ssh, log: silentLog });
  await servers.listen();
  await new Promise<void>((done) => http.listen(0, "127.0.0.1", done));
});
after(async () => {
  await servers.close(0);
  http.close();
  http.closeAllConnections();
  await api.close();
  await rm(root, { recursive: true, force: true });
});

/** A builder that reads the whole source and detects static files. */
const readingBuilder = builderDouble({
  async plan(request: PlanRequest) {
    const paths: string[] = [];
    const reader = list({ onReadEntry: ({ path, type }) => void (type === "File" && paths.push(path)) });
    await pipeline(request.source(), reader);
    const planned = await builderDouble().plan(request);
    assert.ok(planned.outcome === "planned");
    return { ...planned, plan: { ...planned.plan, notes: [`files: ${paths.toSorted().join(" ")}`] } };
  },
});

/** Creates a project that deploys its branch main, and a work tree to push from. */
async function projectOf(name: string) {
  const project = await testProject(api.platform, org, name);
  await repositories.ensure(project.id);
  const { port } = http.address() as AddressInfo;
  const url = `http://x:${org.member}@127.0.0.1:${port}/git/acme/${name}.git`;
  const work = await makeWorkTree(root, name);
  const push = (...refs: string[]) => tryGit(root, ["-C", work, "push", url, ...refs]);
  /** Pushes with another token over HTTP, or with a key over SSH. */
  const pushBy = (by: { token: string } | { keyFile: string }, ...refs: string[]) => {
    const over =
      "token" in by ? url.replace(org.member, by.token) : `ssh://git@127.0.0.1:${servers.port}/acme/${name}.git`;
    return tryGit(root, ["-C", work, "push", over, ...refs], "keyFile" in by ? by : {});
  };
  const { db } = api.database;
  await db.updateTable("project").set({ deploy_branch: "main" }).where("id", "=", project.id).execute();
  return { project, work, push, pushBy };
}

/** Stands in for the builder and the runtime during the next build of a project; runs `meanwhile` while the deployment goes live. */
let deployments = 0;
async function deployNext(projectId: string, meanwhile: () => Promise<unknown> = async () => {}): Promise<string> {
  const { db } = api.database;
  const queued = () =>
    db
      .selectFrom("build")
      .select("id")
      .where("project_id", "=", projectId)
      .where("status", "=", "queued")
      .executeTakeFirst();
  const build = await until(queued, { timeoutMs: guardMs });
  assert.ok(build);
  const active = db.updateTable("deployment").where("project_id", "=", projectId).where("status", "=", "active");
  await active.set({ status: "retired" }).execute();
  const owner = { org_id: org.id, project_id: projectId };
  const started = { build_id: build.id, number: (deployments += 1), status: "starting" } as const;
  const id = await testDeployment(api.platform, owner, started);
  await db.updateTable("build").set({ status: "succeeded" }).where("id", "=", build.id).execute();
  const deployment = db.updateTable("deployment").where("id", "=", id);
  // As in the switch, the deployment is active and leased until the edges route to it.
  await deployment.set({ status: "active", lease_until: sql`now() + interval '1 hour'` }).execute();
  await meanwhile();
  await deployment.set({ lease_until: null }).execute();
  return `refs/berth/builds/${build.id}`;
}

test("without namespaces for sandboxes, only the first organization can push, and a build of another one prevents the start", async (t) => {
  isolation = "none";
  t.after(() => (isolation = "namespaces"));
  const { push } = await projectOf("foreign");
  const pushed = await push("main");
  assert.match(pushed.stderr, /cannot isolate applications/);
  assert.notEqual(pushed.exitCode, 0);
  const { db } = api.database;
  await testBuild(
    api.platform,
    { org_id: org.id, project_id: (await testProject(api.platform, org, "built")).id },
    { status: "succeeded" },
  );
  await assert.rejects(requireAdmittedCode(db, admitCode([], false)), /code of more than one organization \(acme\)/);
  await requireAdmittedCode(db, admitCode([], true));
  await requireAdmittedCode(db, admitCode(["namespaces"], false));
});

test("the pin of a push is removed once the branch has moved", async () => {
  const { project, work, push } = await projectOf("moved");
  const [pushed, pin] = await Promise.all([push("main"), deployNext(project.id)]);
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  assert.equal(
    await repositories.resolve(project.id, "refs/heads/main"),
    await git(root, ["-C", work, "rev-parse", "main"]),
  );
  assert.equal(await repositories.resolve(project.id, pin), null);
});

test("the pin of a push whose branch did not move stays, so that the active commit is kept until the branch is repaired", async () => {
  const { project, work, push } = await projectOf("overtaken");
  const commit = await git(root, ["-C", work, "rev-parse", "main"]);
  const overtake = async () => {
    const repository = await repositories.ensure(project.id);
    const other = await makeWorkTree(root, "other");
    await git(root, ["-C", other, "push", "-q", repository, "main"]);
  };
  const [pushed, pin] = await Promise.all([push("main"), deployNext(project.id, overtake)]);
  assert.notEqual(pushed.exitCode, 0);
  assert.equal(await repositories.resolve(project.id, pin), commit);
});

test("a push whose git process is killed while its deployment goes live still moves the branch, and the next push is accepted", async () => {
  const { project, work, push } = await projectOf("killed");
  const commit = await git(root, ["-C", work, "rev-parse", "main"]);
  const [pushed] = await Promise.all([push("main"), deployNext(project.id, async () => killReceivePack())]);
  assert.notEqual(pushed.exitCode, 0);
  const isMoved = async () => (await repositories.resolve(project.id, "refs/heads/main")) === commit || undefined;
  assert.equal(await until(isMoved, { timeoutMs: guardMs }), true);
  await commitFile(root, work, "next.txt", "next");
  const [next] = await Promise.all([push("main"), deployNext(project.id)]);
  assert.equal(next.exitCode, 0, next.stderr);
});

function killReceivePack(): void {
  // Processes of other test files may exit in the meantime.
  const isOurs = (pid: number) => readProcessFile(pid, "environ").includes(root);
  const found = listProcesses().filter(({ pid, commandLine }) => /git receive-pack/.test(commandLine) && isOurs(pid));
  assert.ok(found.length > 0);
  killProcesses(found);
}

test("a branch or tag that is not deployed has the same limits as a deployed one", async () => {
  const { project, work, push } = await projectOf("stored");
  await git(root, ["-C", work, "checkout", "-q", "-b", "large"]);
  for (let index = 0; index < 6; index += 1) await commitFile(root, work, `${index}.txt`, "x");
  await git(root, ["-C", work, "tag", "-m", "Large", "v1"]);
  for (const [ref, says] of [
    ["large", /large: The source has more than 5 files/],
    ["v1", /v1: The source has more than 5 files/],
  ] as const) {
    const pushed = await push(ref);
    assert.notEqual(pushed.exitCode, 0);
    assert.match(pushed.stderr, says);
  }
  // A push is atomic.
  assert.match((await push("main", "large")).stderr, /large: The source/);
  assert.equal(await repositories.resolve(project.id, "refs/heads/main"), null);
});

test("a tag that does not point to a commit is stored", async () => {
  const { work, push } = await projectOf("tags");
  const blob = await git(root, ["-C", work, "rev-parse", "main:hello.txt"]);
  await git(root, ["-C", work, "tag", "key", blob]);
  await git(root, ["-C", work, "tag", "-m", "Fine", "v1", "main"]);
  const pushed = await push("key", "v1");
  assert.equal(pushed.exitCode, 0, pushed.stderr);
});

test("a push to a project's earlier path succeeds and prints the current path", async () => {
  const { push } = await projectOf("former");
  const renamed = await api.call("POST", "/v1/projects/former/rename", { token: org.owner, body: { slug: "latter" } });
  assert.equal(renamed.status, 200, renamed.text);
  const pushed = await push("main:refs/heads/other");
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  assert.match(pushed.stderr, /The project former was renamed to latter[\s\S]*former\.git with latter\.git/);
});

test("a token limited to projects, and an SSH key that it registered, reach no other repository", async () => {
  const own = await projectOf("within");
  await projectOf("beyond");
  const token = await testToken(api.database.db, org.id, { project_ids: [own.project.id] });
  const { keyFile } = await makeKey(root, "ed25519");
  const public_key = await readFile(`${keyFile}.pub`, "utf8");
  const added = await api.call("POST", "/v1/ssh-keys", { token: token.text, body: { name: "agent", public_key } });
  assert.equal(added.status, 201, added.text);
  const { port } = http.address() as AddressInfo;
  const bases = [`http://x:${token.text}@127.0.0.1:${port}/git`, `ssh://git@127.0.0.1:${servers.port}`];
  for (const base of bases) {
    const call = (...args: string[]) => tryGit(root, args, { keyFile });
    const read = (name: string) => call("ls-remote", `${base}/acme/${name}.git`);
    const write = (name: string) => call("-C", own.work, "push", `${base}/acme/${name}.git`, "main:refs/heads/other");
    const [ours, theirs, missing] = [await read("within"), await read("beyond"), await read("nowhere")];
    assert.equal(ours.exitCode, 0, ours.stderr);
    assert.equal(theirs.stderr.replaceAll("beyond", "nowhere"), missing.stderr);
    assert.notEqual(theirs.exitCode, 0);
    const [pushed, refused] = [await write("within"), await write("beyond")];
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    assert.notEqual(refused.exitCode, 0);
    assert.match(refused.stderr, /There is no such repository|not found/);
  }
});

test("a person pushes under their own name, within their projects, until they are removed", async () => {
  const own = await projectOf("hers");
  await projectOf("theirs");
  const ada = await peopleAt(api, "https://berth.test").person(org.owner, "Ada", { projects: ["hers"] });
  const { keyFile } = await makeKey(await mkdtemp(join(root, "ada-")), "ed25519");
  const public_key = await readFile(`${keyFile}.pub`, "utf8");
  const added = await api.call("POST", "/v1/ssh-keys", { token: ada.token, body: { name: "laptop", public_key } });
  assert.equal(added.status, 201, added.text);
  const made = await api.call("POST", "/v1/api-tokens", { token: ada.token, body: { name: "script" } });
  const ways = [{ keyFile }, { token: String(made.body["token"]) }] as const;
  for (const way of ways) {
    const pushed = await own.pushBy(way, "main:refs/heads/kept");
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    const { port } = http.address() as AddressInfo;
    const base = "token" in way ? `http://x:${way.token}@127.0.0.1:${port}/git` : `ssh://git@127.0.0.1:${servers.port}`;
    const reached = await tryGit(root, ["ls-remote", `${base}/acme/theirs.git`], { keyFile });
    assert.notEqual(reached.exitCode, 0);
  }
  const { db } = api.database;
  const dayAgo = new Date(Date.now() - 86_400_000);
  const membership = () => db.selectFrom("api_token").select("last_used_at").where("id", "=", ada.id);
  await db.updateTable("api_token").set({ last_used_at: dayAgo }).where("id", "=", ada.id).execute();
  const deploying = own.pushBy({ keyFile }, "main");
  await deployNext(own.project.id);
  await deploying;
  const isUsed = async () => Date.parse((await membership().executeTakeFirstOrThrow()).last_used_at ?? "") > +dayAgo;
  assert.ok(await until(isUsed, { timeoutMs: guardMs }), "what registered a key counts as used with it");
  const ended = { finished_at: new Date(), activated_at: new Date() };
  await api.database.db.updateTable("deployment").set(ended).where("project_id", "=", own.project.id).execute();
  const { body } = await api.call("GET", "/v1/activity?project=hers", { token: org.owner });
  const actors = (body["activity"] as { actor: { name: string } }[]).map(({ actor }) => actor.name);
  assert.ok(actors.includes("Ada via SSH key laptop"), actors.join());
  assert.equal((await api.call("DELETE", `/v1/members/${ada.id}`, { token: org.owner })).status, 204);
  for (const way of ways) assert.notEqual((await own.pushBy(way, "main:refs/heads/late")).exitCode, 0);
});

test("a project over its disk limit cannot store new branches, but can delete branches", async () => {
  const { project, push } = await projectOf("full");
  assert.equal((await push("main:refs/heads/first")).exitCode, 0);
  assert.ok(((await repositories.diskBytes(project.id)) ?? 0) > 0);
  const use = { images_bytes: testDiskLimits.images_bytes + 1, next_at: new Date() };
  const row = { ...use, project_id: project.id, org_id: org.id };
  await api.database.db.insertInto("disk_use").values(row).execute();
  const refused = await push("main:refs/heads/second");
  assert.notEqual(refused.exitCode, 0);
  assert.match(refused.stderr, /repository, images and build caches use[\s\S]*git push --delete/);
  const deleted = await push(":refs/heads/first");
  assert.equal(deleted.exitCode, 0, deleted.stderr);
});

test("git push -o plan prints what the push would do, and changes nothing", async () => {
  const { project, work, push } = await projectOf("planned");
  const crons = [{ path: "/tick", schedule: "0 4 * * *" }];
  await commitFile(root, work, "berth.json", JSON.stringify({ health_path: "/up", crons }));
  await commitFile(root, work, ".env.example", "SECRET=\nPORT=3000\n");
  const planned = await push("-o", "plan", "main");
  assert.notEqual(planned.exitCode, 0);
  for (const said of [
    /-----> Commit [0-9a-f]{8} on main: would be built and deployed/,
    /Static files detected\s*\n.*files: \.env\.example berth\.json hello\.txt/,
    /healthy when \/up answers/,
    /tick: 0 4 \* \* \* \/tick \(created\)/,
    /\.env\.example names variables that are not set: SECRET\s*\n/,
    /This was only the plan: nothing was pushed or deployed/,
  ])
    assert.match(planned.stderr, said);
  assert.equal(await repositories.resolve(project.id, "refs/heads/main"), null);
  const commit = await git(root, ["-C", work, "rev-parse", "main"]);
  assert.equal(await repositories.peel(project.id, commit, null), null);
  const { db } = api.database;
  const builds = await db.selectFrom("build").select("id").where("project_id", "=", project.id).execute();
  assert.deepEqual(builds, []);
  assert.match(
    (await push("-o", "plan", "main:refs/heads/other")).stderr,
    /this push does not include the branch that deploys/,
  );
});

test("an unknown push option is refused before any branch moves", async () => {
  const { project, push } = await projectOf("options");
  const pushed = await push("-o", "plam", "main");
  assert.notEqual(pushed.exitCode, 0);
  assert.match(pushed.stderr, /The only push option is `-o plan`/);
  assert.equal(await repositories.resolve(project.id, "refs/heads/main"), null);
});

test("refs that git could not store are refused before anything is built", async () => {
  const { project, work, push } = await projectOf("conflicting");
  const blob = await git(root, ["-C", work, "rev-parse", "main:hello.txt"]);
  for (const [refs, says] of [
    [["main:refs/heads/main", "main:refs/heads/main/next"], /git cannot store this push: .*refs\/heads\/main/],
    [["main:refs/heads/main", `${blob}:refs/heads/file`], /trying to write non-commit object/],
  ] as const) {
    const pushed = await push(...refs);
    assert.notEqual(pushed.exitCode, 0);
    assert.match(pushed.stderr, says);
    assert.equal(await repositories.resolve(project.id, "refs/heads/main"), null);
  }
  const { db } = api.database;
  const builds = await db.selectFrom("build").select("id").where("project_id", "=", project.id).execute();
  assert.deepEqual(builds, []);
});

test("a token in approval mode and its SSH keys may add to branches, but neither delete nor rewrite branches and tags", async () => {
  const { project, work, push, pushBy } = await projectOf("careful");
  const { text: token, id } = await testToken(api.database.db, org.id, { role: "member", approval_mode: true });
  const { keyFile } = await makeKey(root, "ecdsa");
  const public_key = await readFile(`${keyFile}.pub`, "utf8");
  const added = await api.call("POST", "/v1/ssh-keys", { token, body: { name: "agent", public_key } });
  assert.equal(added.status, 201, `${id} ${added.text}`);
  assert.equal((await push("main:refs/heads/topic", "main:refs/tags/v1")).exitCode, 0);
  for (const by of [{ token }, { keyFile }]) {
    await commitFile(root, work, "next.txt", `${Math.random()}`);
    const continued = await pushBy(by, "main:refs/heads/topic");
    assert.equal(continued.exitCode, 0, continued.stderr);
    const before = await repositories.resolve(project.id, "refs/heads/topic");
    await git(root, ["-C", work, "checkout", "-q", "--orphan", `other-${Math.random()}`]);
    await commitFile(root, work, "other.txt", `${Math.random()}`);
    for (const ref of [
      ":refs/heads/topic",
      "+HEAD:refs/heads/topic",
      "+main~1:refs/heads/topic",
      ":refs/tags/v1",
      "+HEAD:refs/tags/v1",
    ]) {
      const refused = await pushBy(by, ref);
      assert.notEqual(refused.exitCode, 0, ref);
      assert.match(
        refused.stderr,
        /A token in approval mode, and its SSH keys, cannot delete or rewrite (?:topic|v1)\./,
      );
    }
    assert.equal(await repositories.resolve(project.id, "refs/heads/topic"), before);
    await git(root, ["-C", work, "checkout", "-q", "main"]);
  }
  assert.equal((await push(":refs/heads/topic")).exitCode, 0);
});

test("a push that changes no watched file waits for the push in progress, so that git accepts both or neither", async () => {
  const { project, work, push } = await projectOf("watched");
  const { db } = api.database;
  await db
    .updateTable("project")
    .set({ watch: ["src"] })
    .where("id", "=", project.id)
    .execute();
  assert.equal((await Promise.all([push("main"), deployNext(project.id)]))[0].exitCode, 0);
  const first = await git(root, ["-C", work, "rev-parse", "main"]);
  const untouched = await commitFile(root, work, "notes.txt", "only notes");
  await mkdir(join(work, "src"));
  await commitFile(root, work, "src/app.txt", "changed");
  const meanwhile = async () => {
    const pushed = push(`${untouched}:refs/heads/main`);
    const queued = () =>
      db
        .selectFrom("build")
        .select("id")
        .where("project_id", "=", project.id)
        .where("status", "=", "queued")
        .executeTakeFirst();
    const build = await until(queued, { timeoutMs: guardMs });
    assert.ok(build, "it was not queued");
    assert.equal(await repositories.resolve(project.id, "refs/heads/main"), first);
    await db.updateTable("build").set({ status: "failed" }).where("id", "=", build.id).execute();
    assert.notEqual((await pushed).exitCode, 0);
  };
  const [pushed] = await Promise.all([push("main"), deployNext(project.id, meanwhile)]);
  assert.equal(pushed.exitCode, 0, pushed.stderr);
});
