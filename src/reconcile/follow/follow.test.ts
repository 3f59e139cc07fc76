// Drawn with other git files: its rules are its own, and .ci/run shows them with every change.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { sql } from "kysely";
import { testDeployment, testProject } from "../../../test/support/fixtures.ts";
import { makeRemote, serveHttps, type RemoteFolder } from "../../../test/support/git-remotes.ts";
import { seededRandom } from "../../../test/support/seeded-random.ts";
import {
  emptyDisk,
  testApi,
  testOrganization,
  type TestApi,
  type TestOrganization,
} from "../../../test/support/test-platform.ts";
import { platformBeside, testSettings } from "../../../test/support/platform-double.ts";
import { createLocalRepositories } from "../../adapters/repositories-local/local-repositories.ts";
import { endFetch, openFollow, takeFollow } from "../../features/follow/follow.ts";
import { silentLog } from "../../kit/log.ts";
import { webhookHeaders } from "../../kit/standard-webhooks.ts";
import type { OutgoingOutcome, OutgoingRequest } from "../../ports/outgoing-http.ts";
import { nothingInProgress } from "../../../test/support/nothing-in-progress.ts";
import type { ReconcileSettings } from "../platform.ts";
import { commitStatusesTask } from "./commit-statuses-task.ts";
import { followTask } from "./follow-task.ts";
import { followedPreviewsTask } from "./previews-task.ts";

let remote: RemoteFolder;
let server: Awaited<ReturnType<typeof serveHttps>>;
let api: TestApi;
let org: TestOrganization;
let dir: string;

before(async () => {
  remote = await makeRemote();
  server = await serveHttps(remote);
  dir = await mkdtemp(join(tmpdir(), "berth-follow-"));
  const addresses = { resolve: async () => ["127.0.0.1"], mayReach: () => true };
  const access = { addresses, certificates: remote.caFile };
  const repositories = await createLocalRepositories({ dir, access, log: silentLog });
  api = await testApi({ ports: { repositories } });
  // The followed repositories are on this machine.
  Object.assign(api.platform.settings, { outgoingNetworks: ["127.0.0.0/8"] });
  org = await testOrganization(api.database.db, "acme");
});
after(async () => {
  await api.close();
  await server.close();
  await remote.close();
  await rm(dir, { recursive: true });
});

const taken: OutgoingOutcome = { outcome: "answered", status: 201, excerpt: "" };

/** A control plane that fetches and reports statuses; `answer` gives the repository host's answer to a status. */
function plane(
  answer: (request: OutgoingRequest) => OutgoingOutcome = () => taken,
  dataDisk = emptyDisk,
  settings: Partial<ReconcileSettings> = {},
) {
  const sent: OutgoingRequest[] = [];
  const send = async (request: OutgoingRequest) => (sent.push(request), answer(request));
  const all = platformBeside(api, { owner: "boot/1/1", ports: { outgoingHttp: { send }, dataDisk }, settings });
  const tasks = [followTask(all, () => {}), commitStatusesTask(all), followedPreviewsTask(all, () => {})] as const;
  const runOnce = async (task: (typeof tasks)[number]) => {
    await task.run(new AbortController().signal);
    await task.settle?.();
  };
  return { sent, fetch: () => runOnce(tasks[0]), show: () => runOnce(tasks[1]), previews: () => runOnce(tasks[2]) };
}

/** A project that follows its own branch of the remote repository. */
async function followed(more: Record<string, unknown> = {}) {
  const { id: project_id, slug } = await testProject(api.platform, org);
  const branch = `of-${slug}`;
  const path = `/v1/projects/${slug}/follow`;
  const made = await api.call("PUT", path, { token: org.owner, body: { url: server.url, branch, ...more } });
  assert.equal(made.status, 200, made.text);
  const { db } = api.database;
  const owner = { org_id: org.id, project_id };
  const builds = () =>
    db.selectFrom("build").selectAll().where("project_id", "=", project_id).orderBy("number").execute();
  return {
    ...{ slug, path, branch, project_id, made, builds },
    push: (text: string, file?: string) => remote.push(text, { branch, ...(file === undefined ? {} : { file }) }),
    call: (method: string, rest = "") => api.call(method, `${path}${rest}`, { token: org.owner }),
    deliveries: async () => {
      const { body } = await api.call("GET", `${path}/deliveries`, { token: org.member });
      return body["deliveries"] as {
        status: string;
        event: string;
        reason: string | null;
        commit: string;
        build: unknown;
      }[];
    },
    /** Makes the newest build's deployment active, or failed. */
    async end(status: "active" | "failed" = "active") {
      const { id, commit } = (await builds()).at(-1) ?? assert.fail("no build");
      await db.updateTable("build").set({ status: "succeeded" }).where("id", "=", id).execute();
      await db.updateTable("deployment").set({ status: "retired" }).where("project_id", "=", project_id).execute();
      const { max } = db.fn;
      const last = await db
        .selectFrom("deployment")
        .select(max("number").as("n"))
        .where("project_id", "=", project_id)
        .executeTakeFirst();
      const deployment = await testDeployment(api.platform, owner, {
        build_id: id,
        number: (last?.n ?? 0) + 1,
        status,
      });
      const activated_at = status === "active" ? sql<string>`now()` : null;
      await db
        .updateTable("deployment")
        .set({ commit, trigger: "follow", activated_at })
        .where("id", "=", deployment)
        .execute();
    },
    due: () =>
      db
        .updateTable("project_follow")
        .set({ next_fetch_at: sql`now()` })
        .where("project_id", "=", project_id)
        .execute(),
  };
}

const nothing = "0".repeat(40);

interface Message {
  readonly secret: string;
  readonly ref: string;
  readonly after: string;
  readonly event?: string;
}

/** A push as each host reports it: the headers, and the fields of the body that matter. */
const hosts = {
  github({ secret, ref, after, event = "push" }: Message) {
    const body = JSON.stringify({
      ref,
      before: nothing,
      after,
      forced: false,
      commits: [{ id: after, added: ["a.txt"] }],
    });
    const hex = createHmac("sha256", secret).update(body).digest("hex");
    const names = { "x-github-event": event, "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958" };
    return {
      body,
      headers: { ...names, "x-hub-signature-256": `sha256=${hex}`, "user-agent": "GitHub-Hookshot/044aadd" },
    };
  },
  gitea({ secret, ref, after, event = "push" }: Message) {
    const body = JSON.stringify({ ref, before: nothing, after, total_commits: 1, pusher: { login: "ada" } });
    const hex = createHmac("sha256", secret).update(body).digest("hex");
    return { body, headers: { "x-gitea-event": event, "x-gitea-delivery": "f6266f16-1bf3", "x-gitea-signature": hex } };
  },
  gitlab({ secret, ref, after, event = "Push Hook" }: Message) {
    const body = JSON.stringify({
      object_kind: "push",
      event_name: "push",
      before: nothing,
      after,
      ref,
      project_id: 15,
    });
    return { body, headers: { "x-gitlab-event": event, "x-gitlab-event-uuid": "13792a34", "x-gitlab-token": secret } };
  },
  signedGitlab({ secret, ref, after, event = "Push Hook" }: Message) {
    const body = JSON.stringify({ object_kind: "push", before: nothing, after, ref });
    const signed = webhookHeaders(secret, { id: "idem-1", timestamp: 1_750_000_000, body });
    return { body, headers: { "x-gitlab-event": event, ...signed } };
  },
};

async function deliver(hook: unknown, { body, headers }: { body: string; headers: Record<string, string> }) {
  const { pathname } = new URL(String(hook));
  return (await api.call("POST", pathname, { body, headers: { ...headers, "content-type": "application/json" } }))
    .status;
}

test("100 forged, repeated, late and reordered deliveries deploy each head of the branch once", async () => {
  const random = seededRandom();
  const { fetch } = plane();
  const { made, branch, push, builds, end, deliveries } = await followed();
  const { secret, hook_url } = made.body as { secret: string; hook_url: string };
  const pushed: string[] = [];
  const makers = Object.values(hosts);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  let sent = 0;
  for (let round = 0; round < 4; round += 1) {
    pushed.push(await push(`round ${round}`));
    const right = { secret, ref: `refs/heads/${branch}`, after: pushed[round] as string };
    assert.equal(await deliver(hook_url, pick(makers)(right)), 202);
    for (let each = 0; each < 24; each += 1, sent += 1) {
      const make = pick(makers);
      const wrong = { ...right, secret: `whsec_${Buffer.from(`guess ${each}`).toString("base64")}` };
      const [message, status] = pick<readonly [Message, number]>([
        [right, 202],
        [{ ...right, after: pick(pushed) }, 202],
        [wrong, 401],
        [{ ...right, ref: "refs/heads/other" }, 200],
        [{ ...right, after: nothing }, 200],
        [{ ...right, event: "ping" }, 200],
      ]);
      assert.equal(await deliver(hook_url, make(message)), status);
      if (random() < 0.1) await fetch();
    }
    await fetch();
    assert.equal((await builds()).length, round + 1, "one build while it is under way");
    await end();
    await fetch();
  }
  assert.equal(sent + 4, 100);
  assert.deepEqual(
    (await builds()).map(({ commit, origin, branch: of }) => [commit, origin, of]),
    pushed.map((commit) => [commit, "follow", "main"]),
  );
  const rows = await api.database.db.selectFrom("follow_delivery").selectAll().where("org_id", "=", org.id).execute();
  assert.ok(rows.every(({ status }) => status !== "waiting"));
  const deployed = rows.filter(({ status }) => status === "deployed").map(({ commit }) => commit);
  assert.deepEqual(new Set(deployed), new Set(pushed));
  assert.equal(deployed.length, pushed.length);
  assert.ok(rows.filter(({ status }) => status === "ignored").every(({ reason }) => reason !== null));
  assert.ok((await deliveries()).length > 0);
});

test("the platform looks by itself, and a commit that failed is built again only by hand", async () => {
  const { fetch } = plane();
  const { push, builds, end, due, call, deliveries, path } = await followed();
  const commit = await push("by itself");
  await fetch();
  assert.deepEqual(
    (await builds()).map((build) => build.commit),
    [commit],
  );
  assert.deepEqual(
    (await deliveries()).map(({ event, status }) => [event, status]),
    [["poll", "deployed"]],
  );
  await end("failed");
  await due();
  await fetch();
  assert.equal((await builds()).length, 1);
  assert.equal((await call("POST", "/fetch")).status, 201);
  await fetch();
  assert.equal((await builds()).length, 2);
  await end();
  await call("POST", "/fetch");
  await fetch();
  assert.equal((await builds()).length, 2);
  assert.match((await deliveries())[0]?.reason ?? "", /^No new commit/);
  const { body } = await api.call("GET", path, { token: org.member });
  assert.deepEqual([body["commit"], body["problem"]], [commit, null]);
});

test("a fetch for a plan stores the commit and deploys nothing, unless a deploy is requested, too", async () => {
  const { fetch } = plane();
  const { push, builds, due, call, deliveries, slug } = await followed({ deploy: false });
  const commit = await push("planned");
  await fetch();
  assert.match((await deliveries())[0]?.reason ?? "", /^Fetched for a plan/);
  await due();
  await fetch();
  const plan = await api.call("POST", `/v1/projects/${slug}/plan`, { token: org.member, body: { ref: commit } });
  assert.deepEqual([(await builds()).length, plan.body["commit"]], [0, commit], plan.text);
  await call("POST", "/fetch");
  const other = await followed({ deploy: false });
  await api.call("PUT", other.path, { token: org.owner, body: { url: server.url, branch: other.branch } });
  await other.push("next");
  await fetch();
  assert.deepEqual([(await builds())[0]?.commit, (await other.builds()).length], [commit, 1]);
});

test("a commit that cannot be built is ignored with why, and nothing is queued", async () => {
  const { push, builds, deliveries, call } = await followed();
  await push("too much");
  assert.equal((await call("POST", "/fetch")).status, 201);
  const { follow } = testSettings;
  const settings = { follow: { ...follow, treeLimits: { ...follow.treeLimits, bytes: 1 } } };
  await plane(undefined, undefined, settings).fetch();
  assert.deepEqual(await builds(), []);
  const [{ status, reason } = assert.fail("no delivery")] = await deliveries();
  assert.equal(status, "ignored");
  assert.match(reason ?? "", /more than/);
});

test("a fetch that fails says why and is tried again; the delivery waits for it", async () => {
  const { fetch } = plane();
  const { push, builds, call, due, deliveries } = await followed();
  await call("POST", "/fetch");
  await fetch();
  const seen = (await call("GET")).body;
  assert.match(String(seen["problem"]), /no branch of-/);
  assert.equal((await deliveries())[0]?.status, "waiting");
  const commit = await push("now it is there");
  await due();
  await fetch();
  assert.deepEqual(
    (await builds()).map((build) => build.commit),
    [commit],
  );
  assert.deepEqual(
    (await deliveries()).map(({ status }) => status),
    ["deployed"],
  );
  assert.equal((await call("GET")).body["problem"], null);
});

test("a fetch by hand reports no earlier failure: not of the last fetch, nor of one that began with other settings", async () => {
  const { fetch } = plane();
  const { call, path, project_id, branch } = await followed();
  const problem = async () => (await call("GET")).body["problem"];
  await fetch();
  assert.notEqual(await problem(), null);
  await call("POST", "/fetch");
  assert.equal(await problem(), null);
  const { db } = api.database;
  await db
    .updateTable("project_follow")
    .set({ next_fetch_at: sql`now() + interval '1 hour'` })
    .where("project_id", "!=", project_id)
    .execute();
  const taken = await takeFollow(db, "boot/9/9", nothingInProgress);
  assert.ok(taken?.project_id === project_id);
  await api.call("PUT", path, { token: org.owner, body: { url: server.url, branch: `${branch}-other` } });
  const lease = { table: "project_follow", id: taken.id, owner: "boot/9/9", fence: taken.fence } as const;
  const end = { problem: "No such branch.", againMs: 1000 };
  assert.ok(await db.transaction().execute((tx) => endFetch(tx, taken, lease, end)));
  assert.equal(await problem(), null);
});

test("of a monorepo only what the project watches is built", async () => {
  const { fetch } = plane();
  const { slug, push, builds, end, due } = await followed();
  await api.call("PATCH", `/v1/projects/${slug}`, { token: org.owner, body: { root: "shop" } });
  await api.database.db.updateTable("project").set({ root: "shop" }).where("slug", "=", slug).execute();
  const first = await push("one", "shop/a.txt");
  await fetch();
  await end();
  await push("elsewhere", "blog/a.txt");
  await due();
  await fetch();
  assert.equal((await builds()).length, 1);
  const last = await push("two", "shop/a.txt");
  await due();
  await fetch();
  assert.deepEqual(
    (await builds()).map(({ commit }) => commit),
    [first, last],
  );
});

test("the repository's host is shown what becomes of a commit, in its own words, again after a failure", async () => {
  const answers: OutgoingOutcome[] = [{ outcome: "answered", status: 403, excerpt: "" }];
  const { fetch, show, sent } = plane(() => answers.shift() ?? taken);
  const { push, end, call, slug } = await followed({ provider: "gitea", token: "gt-t0ken" });
  const commit = await push("with a status");
  await fetch();
  await show();
  const { text, body } = await call("GET");
  assert.match(String(body["status_problem"]), /status 403\. The token needs permission/);
  assert.ok(!text.includes("t0ken"));
  await api.database.db
    .updateTable("commit_status")
    .set({ next_attempt_at: sql`now()` })
    .execute();
  await show();
  await show();
  await end();
  await show();
  await show();
  const address = `https://localhost:${server.port}/api/v1/repos/app/statuses/${commit}`;
  assert.deepEqual(
    sent.map(({ url, body: said }) => [url, (JSON.parse(said) as { state: string }).state]),
    ["pending", "pending", "success"].map((state) => [address, state]),
  );
  assert.equal(sent[0]?.headers["authorization"], "token gt-t0ken");
  assert.equal(
    (JSON.parse(sent[2]?.body ?? "") as { target_url: string }).target_url,
    `http://berth.test/projects/${slug}/deployments`,
  );
  assert.equal((await call("GET")).body["status_problem"], null);
});

/** A followed project that wants previews, with what its host sends and what became of them. */
async function previewed(more: Record<string, unknown> = {}) {
  const project = await followed(more);
  const { project_id, slug, made, end } = project;
  const { db } = api.database;
  await db
    .updateTable("project")
    .set({ previews: ["feature/*", "main"] })
    .where("id", "=", project_id)
    .execute();
  const { secret, hook_url } = made.body as { secret: string; hook_url: string };
  const tell = (branch: string, after: string) =>
    deliver(hook_url, hosts.gitea({ secret, ref: `refs/heads/${branch}`, after }));
  const preview = (branch: string) =>
    db
      .selectFrom("project")
      .selectAll()
      .where(({ and }) => and({ preview_of: project_id, git_branch: branch }))
      .executeTakeFirst();
  const buildsOf = async (branch: string) => {
    const { id = "" } = (await preview(branch)) ?? {};
    return db.selectFrom("build").selectAll().where("project_id", "=", id).orderBy("number").execute();
  };
  return { ...project, slug, end, tell, preview, buildsOf };
}

test("a push to another branch is built into its preview once, and the host is shown what becomes of it", async () => {
  const { previews, show, sent } = plane();
  const { project_id, slug, tell, preview, buildsOf, deliveries, builds } = await previewed({
    ...{ provider: "gitea", token: "gt-t0ken" },
  });
  const branch = `feature/${slug}`;
  const commit = await remote.push("a preview", { branch });
  assert.deepEqual(await Promise.all([tell(branch, commit), tell(branch, commit)]), [202, 202]);
  assert.equal(await tell("other", commit), 200, "a branch of which the project wants no preview");
  assert.equal(await tell("main", commit), 200, "the branch that deploys here");
  await previews();
  const made = await preview(branch);
  assert.deepEqual([made?.slug, (await builds()).length], [`feature-${slug}--${slug}`, 0]);
  const [build, ...more] = await buildsOf(branch);
  assert.deepEqual(
    [build?.commit, build?.origin, build?.message.trim(), build?.requested_by, more.length],
    [commit, "follow", "Say a preview", `localhost:${server.port}`, 0],
  );
  assert.equal(await api.platform.ports.repositories.resolve(project_id, `refs/heads/${branch}`), commit);
  await show();
  await tell(branch, commit);
  await previews();
  assert.equal((await buildsOf(branch)).length, 1, "the same commit is not built again");
  await goLive(build?.id ?? "", made?.id ?? "");
  await show();
  const said = sent.map(({ body }) => JSON.parse(body) as Record<string, string>);
  assert.deepEqual(
    said.map(({ context, state, target_url }) => [context, state, target_url]),
    [
      [`berth/${slug}/preview`, "pending", `http://berth.test/projects/${made?.slug}/builds`],
      [`berth/${slug}/preview`, "success", api.platform.addresses.appUrl(made?.hostname ?? "")],
    ],
  );
  const shown = (await deliveries()) as unknown as { branch: string | null; status: string; reason: string | null }[];
  const ofBranch = shown.filter((each) => each.branch === branch).map(({ status }) => status);
  assert.deepEqual(ofBranch.toSorted(), ["deployed", "ignored", "ignored"]);
  const rewritten = await remote.push("rewritten", { branch });
  await tell(branch, rewritten);
  await previews();
  assert.deepEqual(
    (await buildsOf(branch)).map((each) => each.commit),
    [commit, rewritten],
  );
});

/** Lets a build of a preview go live. */
async function goLive(build_id: string, project_id: string): Promise<void> {
  const { db } = api.database;
  await db.updateTable("build").set({ status: "succeeded" }).where("id", "=", build_id).execute();
  const owner = { org_id: org.id, project_id };
  const id = await testDeployment(api.platform, owner, { build_id, number: 1, status: "active" });
  await db.updateTable("deployment").set({ trigger: "follow" }).where("id", "=", id).execute();
}

test("a pull request gets no preview, whatever reports it: a fork's branch is not one of the repository", async () => {
  const { previews } = plane();
  const { slug, made, preview } = await previewed();
  const { secret, hook_url } = made.body as { secret: string; hook_url: string };
  const branch = `feature/fork-${slug}`;
  const after = await remote.push("of a fork", { branch: `kept/${slug}` });
  await remote.run("push", "-q", remote.bare, `HEAD:refs/pull/7/head`);
  const right = { secret, after, ref: `refs/heads/${branch}` };
  for (const [status, message] of [
    [200, hosts.github({ ...right, event: "pull_request" })],
    [200, hosts.gitea({ ...right, event: "pull_request" })],
    [200, hosts.gitlab({ ...right, event: "Merge Request Hook" })],
    [200, hosts.github({ ...right, ref: "refs/pull/7/head" })],
    [200, hosts.gitlab({ ...right, ref: "refs/merge-requests/7/head" })],
    [202, hosts.github(right)],
  ] as const)
    assert.equal(await deliver(hook_url, message), status);
  await previews();
  assert.equal(await preview(branch), undefined, "the repository has no such branch");
});

test("a branch is neither fetched nor built for a preview while the disk is short of space", async () => {
  const full = { ...emptyDisk, observe: async () => ({ ...(await emptyDisk.observe()), is_short: true }) };
  const { slug, tell, preview, project_id } = await previewed();
  const branch = `feature/${slug}`;
  await tell(branch, await remote.push("no room", { branch }));
  await plane(undefined, full).previews();
  const { repositories } = api.platform.ports;
  assert.equal(await repositories.resolve(project_id, `refs/heads/${branch}`).catch(() => null), null);
  assert.equal(await preview(branch), undefined);
  await api.database.db.updateTable("preview_fetch").set({ next_fetch_at: new Date() }).execute();
  await plane().previews();
  assert.notEqual(await preview(branch), undefined, "once there is room");
});

test("a preview goes with its branch, once the repository itself has no such branch, unless it is pinned", async () => {
  const { previews } = plane();
  const { slug, tell, preview, deliveries } = await previewed();
  const branch = `feature/${slug}`;
  await tell(branch, await remote.push("soon gone", { branch }));
  await previews();
  await tell(branch, nothing);
  await previews();
  assert.equal((await preview(branch))?.deleted_at, null, "a delivery that the repository does not confirm");
  const pin = `/v1/projects/${slug}/previews/feature-${slug}--${slug}/pin`;
  assert.equal((await api.call("PUT", pin, { token: org.owner })).status, 200);
  await remote.run("push", "-q", remote.bare, `:refs/heads/${branch}`);
  await tell(branch, nothing);
  await previews();
  assert.equal((await preview(branch))?.deleted_at, null, "a pinned one");
  assert.equal((await api.call("DELETE", pin, { token: org.owner })).status, 200);
  await tell(branch, nothing);
  await previews();
  assert.notEqual((await preview(branch))?.deleted_at, null);
  assert.match((await deliveries())[0]?.reason ?? "", /has no branch feature\/\S+, so its preview was removed\.$/);
});

test("a preview that cannot be made says why; a fetch that fails is tried again, and few branches wait", async () => {
  const { previews } = plane();
  const { slug, tell, deliveries, project_id } = await previewed();
  for (let each = 0; each < 20; each += 1) assert.equal(await tell(`feature/${slug}-${each}`, nothing), 202);
  assert.equal(await tell(`feature/${slug}-20`, nothing), 200);
  assert.match((await deliveries())[0]?.reason ?? "", /^20 other branches wait/);
  await previews();
  await Promise.all(Array.from({ length: 20 }, () => previews()));
  const waiting = await api.database.db.selectFrom("preview_fetch").selectAll().where("org_id", "=", org.id).execute();
  assert.deepEqual(waiting, [], "branches that the repository does not have are done");
  for (let each = 0; each < 6; each += 1) {
    const branch = `feature/${slug}-${each}`;
    await tell(branch, await remote.push(`${each} of many`, { branch }));
    await previews();
  }
  assert.match((await deliveries())[0]?.reason ?? "", /The project has 5 previews, which is the most\./);
  const key = { org_id: org.id, project_id };
  await api.database.db
    .updateTable("project_follow")
    .set({ url: "https://localhost:1/app" })
    .where(({ and }) => and(key))
    .execute();
  await tell(`feature/${slug}-0`, nothing);
  await previews();
  const failed = await api.database.db.selectFrom("preview_fetch").select(["failures", "lease_owner"]).execute();
  assert.deepEqual(failed, [{ failures: 1, lease_owner: null }]);
  assert.ok(
    followedPreviewsTask(platformBeside(api), () => {}).periodMs <= 60_000,
    "nobody else wakes the next attempt",
  );
});

test("the deploy key's public half is shown, the private one and the secret are sealed, and deleting forgets both", async () => {
  const { path, made, call } = await followed();
  assert.match(String(made.body["secret"]), /^whsec_/);
  const again = await api.call("PUT", path, { token: org.owner, body: { url: server.url, branch: "main" } });
  assert.equal(again.body["secret"], null);
  const other = await api.call("PUT", path, { token: org.owner, body: { url: "git@git.test:acme/shop.git" } });
  assert.equal(other.status, 409, other.text);
  assert.equal((await call("DELETE")).status, 204);
  assert.equal((await call("GET")).status, 404);
  assert.equal(await deliver(made.body["hook_url"], hosts.gitlab({ secret: "", ref: "", after: "" })), 404);
  const ssh = await api.call("PUT", path, { token: org.owner, body: { url: "git@git.test:acme/shop.git" } });
  assert.equal(ssh.body["url"], "ssh://git@git.test/acme/shop.git");
  assert.match(String(ssh.body["public_key"]), /^ssh-ed25519 /);
  const row = await api.database.db
    .selectFrom("project_follow")
    .selectAll()
    .where("url", "=", String(ssh.body["url"]))
    .executeTakeFirstOrThrow();
  const opened = openFollow(api.platform.vault, row.id, "key", row.sealed_key);
  assert.match(opened ?? "", /OPENSSH PRIVATE KEY/);
  assert.ok(!row.sealed_key?.toString("latin1").includes("PRIVATE"));
});

test("a delivery that is too large is refused unread", async () => {
  const { made } = await followed();
  const { headers } = hosts.github({ secret: "x", ref: "x", after: "x" });
  assert.equal(await deliver(made.body["hook_url"], { headers, body: "x".repeat(4 * 1024 * 1024 + 1) }), 413);
});

test("an address that belongs to no project is refused before its body is read, whatever it is", async () => {
  const first = new Uint8Array(10);
  const endless = () =>
    new ReadableStream({ start: (body) => body.enqueue(first), pull: () => new Promise<void>(() => {}) });
  for (const id of ["fol_0", "%00", "x".repeat(5000)]) {
    const { status } = await fetch(`${api.baseUrl}/hooks/${id}`, {
      ...{ method: "POST", body: endless(), duplex: "half" },
      signal: AbortSignal.timeout(5000),
    } as RequestInit);
    assert.equal(status, 404, id);
  }
});
