import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { eventually } from "../support/eventually.ts";
import { createApp, startPlatform, type TestApp, type TestPlatform } from "./platform.ts";

// Drawn with other journey files: it starts a whole platform, which takes too long for every run.

interface Preview {
  readonly slug: string;
  readonly branch: string;
  readonly state: string;
  readonly url: string;
  readonly commit: string | null;
  readonly expires_at: string | null;
}

interface Review {
  readonly url: string;
  readonly counts: object;
  readonly commits: readonly object[];
  readonly files: readonly { readonly path: string; readonly lines: string | null }[];
  readonly rehearsal: { readonly state: string; readonly lines: readonly string[] };
}

let platform: TestPlatform;
let app: TestApp;
const at = "/v1/projects/shop";

/** Answers with its text, its variables or the rows of its table; every release adds a row. */
const files = (text: string) => ({
  "package.json": JSON.stringify({ name: "shop", private: true, dependencies: { pg: "8.23.1" } }),
  Procfile: "web: node server.js\nrelease: node release.js\n",
  "berth.json": JSON.stringify({ crons: [{ path: "/nightly", schedule: "0 3 * * *" }] }),
  "release.js": `const client = new (require("pg").Client)({ connectionString: process.env.DATABASE_URL });
client.connect().then(() => client.query("create table if not exists release (text text); insert into release values ('${text}')"))
  .then(() => client.end());`,
  "server.js": `const { Client } = require("pg");
require("http").createServer(async (req, res) => {
  if (req.url === "/crash") process.exit(1);
  if (req.url === "/env") return res.end(JSON.stringify(process.env));
  if (req.url !== "/rows") return res.end("${text}");
  const client = new Client({ connectionString: process.env.DATABASE_URL });
  await client.connect();
  const { rows } = await client.query("select text from release");
  await client.end();
  res.end(JSON.stringify(rows.map((row) => row.text)));
}).listen(process.env.PORT);`,
});

before(async () => {
  platform = await startPlatform({ BERTH_PREVIEWS_PER_PROJECT: "3" });
  app = await createApp(platform, "shop", files("one"));
  assert.equal((await platform.call("POST", `${at}/database`)).status, 201);
  for (const [key, value] of [
    ["LOG_LEVEL", "debug"],
    ["PAYMENT_KEY", "sk-live"],
  ])
    assert.equal((await platform.call("PUT", `${at}/env/${key}`, { value })).status, 204);
  const pushed = await app.push();
  assert.equal(pushed.exitCode, 0, pushed.stderr);
});
after(() => platform?.destroy());

const settings = (body: object) => platform.call("PUT", `${at}/settings`, body);
const previews = async () => (await platform.call<{ previews: Preview[] }>("GET", `${at}/previews`)).body.previews;
/** Waits until the deployment of a commit is active, which is a moment after its first answer. */
const liveAt = (wanted: string, commit: string | undefined) =>
  eventually(
    async () => (await previews()).some((at) => at.slug === wanted && at.state === "live" && at.commit === commit),
    "the change serves in the preview",
  );
const body = async (slug: string, path = "/") => (await platform.visit(slug, path)).body;
const environment = async (slug: string) => JSON.parse(await body(slug, "/env")) as Record<string, string | undefined>;

async function push(branch: string, text: string) {
  await app.commit(files(text));
  const pushed = await app.push(branch);
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  return pushed.stderr;
}

test("without previews a push of another branch is stored, and says how to turn them on", async () => {
  const said = await push("feature/early", "early");
  assert.match(said, /feature\/early was stored but not deployed/);
  assert.match(said, /berth projects settings shop --previews '\*'/);
  assert.deepEqual(await previews(), []);
  const refused = await platform.call("POST", `${at}/previews`, { branch: "feature/early" });
  assert.deepEqual([refused.status, refused.body["code"]], [409, "conflict"]);
});

test("a push of a branch builds it into a preview with a URL, data and variables of its own", async () => {
  const { status } = await settings({ previews: ["feature/*"], preview_variables: ["LOG_LEVEL", "MISSING"] });
  assert.equal(status, 200);
  const said = await push("feature/search", "two");
  assert.match(said, /Preview of feature\/search: http:\/\/feature-search--shop\.localhost:\d+/);
  assert.equal(await body("feature-search--shop"), "two");
  assert.equal(await body("feature-search--shop", "/rows"), '["two"]');
  assert.deepEqual([await body("shop"), await body("shop", "/rows")], ["one", '["one"]']);
  const env = await environment("feature-search--shop");
  assert.deepEqual(
    [env["BERTH_PREVIEW"], env["BERTH_PREVIEW_OF"], env["BERTH_GIT_BRANCH"], env["LOG_LEVEL"], env["PAYMENT_KEY"]],
    ["1", "shop", "feature/search", "debug", undefined],
  );
  assert.equal((await environment("shop"))["BERTH_PREVIEW"], undefined);
  const crons = await platform.call<{ jobs: unknown[] }>("GET", "/v1/projects/feature-search--shop/cron");
  assert.deepEqual(crons.body.jobs, []);
  const again = await push("feature/search", "three");
  assert.doesNotMatch(again, /Rehears/);
  assert.equal(await body("feature-search--shop", "/rows"), '["two","three"]');
  const [listed] = await previews();
  assert.deepEqual([listed?.branch, listed?.state, listed?.commit], ["feature/search", "live", await app.head()]);
  assert.equal(await app.remoteHead("feature/search"), await app.head());
});

test("a preview is a project that the list shows on request, with variables that nothing else has", async () => {
  const { body: plain } = await platform.call<{ projects: { slug: string }[] }>("GET", "/v1/projects");
  assert.deepEqual(
    plain.projects.map(({ slug }) => slug),
    ["shop"],
  );
  const { body: all } = await platform.call<{ projects: { slug: string; preview: { of: string } | null }[] }>(
    "GET",
    "/v1/projects?previews=true",
  );
  assert.deepEqual(
    all.projects.map(({ preview }) => preview?.of ?? null),
    ["shop", null],
  );
  const set = await platform.call("PUT", "/v1/projects/feature-search--shop/env/LOG_LEVEL", { value: "trace" });
  assert.equal(set.status, 204);
  await eventually(
    async () => (await environment("feature-search--shop"))["LOG_LEVEL"] === "trace",
    "the preview has its own variable",
  );
  assert.equal((await environment("shop"))["LOG_LEVEL"], "debug");
});

test("a failing push is refused, and the preview's earlier version and the project serve on", async () => {
  const head = await app.head();
  await app.commit({ ...files("four"), "release.js": "process.exit(3)" });
  const refused = await app.push("feature/search");
  assert.notEqual(refused.exitCode, 0);
  assert.deepEqual([await body("feature-search--shop"), await body("shop")], ["three", "one"]);
  assert.equal(await app.remoteHead("feature/search"), head);
  await platform.visit("feature-search--shop", "/crash").catch(() => {});
  assert.equal(await body("shop"), "one");
  await eventually(async () => (await body("feature-search--shop")) === "three", "the preview has restarted");
});

test("branches whose names a hostname cannot tell apart have previews of their own, up to the limit", async () => {
  await push("feature/Search_", "five");
  const found = (await previews()).find(({ branch }) => branch === "feature/Search_");
  assert.match(found?.slug ?? "", /^feature-search-[0-9a-f]{6}--shop$/);
  assert.equal(await body(found?.slug ?? ""), "five");
  const odd = "feature/Überaus-langer-Name-mit-ümläuten-und-noch-mehr-Wörtern/🦊";
  await push(odd, "six");
  const long = (await previews()).find(({ branch }) => branch === odd);
  assert.match(long?.slug ?? "", /^feature-uberaus-langer-name-mit[a-z-]*-[0-9a-f]{6}--shop$/);
  assert.ok((long?.slug.length ?? 99) <= 56);
  assert.equal(await body(long?.slug ?? ""), "six");
  await app.commit(files("seven"));
  const refused = await app.push("feature/more");
  assert.notEqual(refused.exitCode, 0);
  assert.match(refused.stderr, /The project has 3 previews, which is the most/);
  const create = await platform.call("POST", `${at}/previews`, { branch: "feature/early" });
  assert.deepEqual([create.status, create.body["code"]], [403, "preview_limit_reached"]);
});

test("deleting the branch removes the preview with its data; a new push of it begins empty", async () => {
  await platform.call("PUT", "/v1/projects/feature-search--shop/env/OWN", { value: "x" });
  const deleted = await app.git("push", `${platform.api}/git/main/shop.git`, ":feature/search");
  assert.equal(deleted.exitCode, 0, deleted.stderr);
  assert.match(deleted.stderr, /The preview of feature\/search is being removed/);
  await eventually(
    async () => !(await previews()).some(({ branch }) => branch === "feature/search"),
    "the preview is gone",
  );
  await eventually(async () => (await platform.visit("feature-search--shop")).status === 404, "nothing answers there");
  assert.equal((await platform.call("GET", "/v1/projects/feature-search--shop")).status, 404);
  await push("feature/search", "eight");
  assert.equal(await body("feature-search--shop", "/rows"), '["eight"]');
  assert.deepEqual([await body("shop"), await body("shop", "/rows")], ["one", '["one"]']);
});

test("a preview is created from a branch of the repository, and deleted by its branch", async () => {
  const odd = (await previews()).find(({ branch }) => branch === "feature/Search_");
  const path = (branch: string) => `${at}/previews/${encodeURIComponent(branch)}`;
  assert.equal((await platform.call("DELETE", path(odd?.branch ?? ""))).status, 204);
  const { status, body: made } = await platform.call<Preview>("POST", `${at}/previews`, { branch: "feature/early" });
  assert.deepEqual([status, made.branch, made.slug], [201, "feature/early", "feature-early--shop"]);
  await eventually(async () => (await body("feature-early--shop")) === "early", "the preview serves");
  const missing = await platform.call("POST", `${at}/previews`, { branch: "feature/missing" });
  assert.deepEqual([missing.status, missing.body["code"]], [409, "nothing_to_deploy"]);
  assert.equal((await platform.call("DELETE", path("feature/missing"))).status, 404);
});

test("a token limited to the project reaches its previews, one limited to another does not", async () => {
  await platform.call("POST", "/v1/projects", { slug: "other", name: "other" });
  const token = async (slug: string) =>
    (await platform.call<{ token: string }>("POST", "/v1/api-tokens", { name: slug, projects: [slug] })).body.token;
  const statusOf = async (slug: string) => {
    const headers = { authorization: `Bearer ${await token(slug)}` };
    return (await fetch(`${platform.api}/v1/projects/feature-early--shop`, { headers })).status;
  };
  assert.deepEqual([await statusOf("shop"), await statusOf("other")], [200, 404]);
});

test("previews begin with a branch of the project's data where it wants that, and change nothing of it", async () => {
  await platform.call("DELETE", `${at}/previews/feature-early--shop`);
  assert.equal((await settings({ preview_data: "branch" })).status, 200);
  await push("feature/data", "ten");
  assert.equal(await body("feature-data--shop", "/rows"), '["one","ten"]');
  await push("feature/data", "eleven");
  assert.equal(await body("feature-data--shop", "/rows"), '["one","ten","eleven"]');
  assert.equal(await body("shop", "/rows"), '["one"]');
  const branches = async () =>
    (await platform.call<{ branches: { used_by: string }[] }>("GET", `${at}/database/branches`)).body.branches;
  assert.deepEqual(
    (await branches()).map(({ used_by }) => used_by),
    ["feature-data--shop"],
  );
  assert.equal((await app.git("push", `${platform.api}/git/main/shop.git`, ":feature/data")).exitCode, 0);
  await eventually(async () => (await branches()).length === 0, "the branch is gone");
  assert.equal((await settings({ preview_data: "masked" })).status, 200);
  const refused = await app.push("feature/masked");
  assert.notEqual(refused.exitCode, 0);
  assert.match(refused.stderr, /mask/);
});

test("a masked preview shows what the live commit's mask leaves, and the project keeps its rows", async () => {
  const mask = { "berth.json": '{"mask": "mask.sql"}', "mask.sql": "update release set text = 'masked'" };
  await app.commit({ ...files("one"), ...mask });
  const live = await app.push();
  assert.equal(live.exitCode, 0, live.stderr);
  await push("feature/masked", "twelve");
  assert.equal(await body("feature-masked--shop", "/rows"), '["masked","masked","twelve"]');
  const listed = await platform.call<{ variables: { key: string }[] }>("GET", "/v1/projects/feature-masked--shop/env");
  assert.ok(listed.body.variables.some(({ key }) => key === "DATABASE_URL"));
  assert.equal(await body("shop", "/rows"), '["one","one"]');
  assert.equal((await settings({ preview_data: "empty" })).status, 200);
  assert.equal((await platform.call("DELETE", `${at}/previews/feature-masked--shop`)).status, 204);
});

test("a control plane that dies during a preview's first build leaves nothing that stops the next push", async () => {
  await app.commit({ ...files("nine"), "build.js": "" });
  let ended: Promise<void> | undefined;
  const pushed = await app.push("feature/killed", (chunk) => {
    if (ended === undefined && chunk.toString().includes("-----> Preview of")) ended = platform.end("SIGKILL");
  });
  assert.notEqual(pushed.exitCode, 0);
  await ended;
  await platform.restart();
  assert.equal(await body("shop"), "one");
  await eventually(async () => {
    const again = await app.push("feature/killed");
    return again.exitCode === 0;
  }, "the branch can be pushed again");
  assert.equal(await body("feature-killed--shop", "/rows"), '["nine"]');
});

test("a pinned preview stays without its branch, and its very image goes live", async () => {
  assert.equal((await platform.call("DELETE", `${at}/previews/feature-killed--shop`)).status, 204);
  assert.equal((await settings({ previews: ["feature/*", "staging"] })).status, 200);
  const log = await push("staging", "staged");
  const pinned = await platform.call<Preview>("PUT", `${at}/previews/staging/pin`);
  assert.deepEqual([pinned.status, pinned.body.expires_at], [200, null]);
  assert.match(await push("staging", "staged"), /pinned: it stays, project staging--shop/);
  const domain = await platform.call("POST", "/v1/projects/staging--shop/domains", { hostname: "staging.example.org" });
  assert.equal(domain.status, 201);
  const gone = await app.git("push", `${platform.api}/git/main/shop.git`, ":staging");
  assert.match(gone.stderr, /pinned and stays: berth preview delete staging/);
  const rows = await body("shop", "/rows");
  const promoted = await platform.call<{ build_id: string; commit: string }>("POST", `${at}/previews/staging/promote`);
  assert.deepEqual([promoted.status, promoted.body.commit], [201, await app.head()]);
  await eventually(async () => (await body("shop")) === "staged", "the preview's image serves the project");
  const made = await platform.call<{ log: string }>("GET", `/v1/builds/${promoted.body.build_id}/logs`);
  assert.match(made.body.log, /Taking the image of staging--shop/);
  assert.equal(/Image (\w+)/.exec(made.body.log)?.[1], /Image (\w+)/.exec(log)?.[1]);
  assert.equal(await body("shop", "/rows"), rows.replace("]", ',"staged"]'), "with the project's data");
  const env = await environment("shop");
  assert.deepEqual([env["PAYMENT_KEY"], env["BERTH_PREVIEW"]], ["sk-live", undefined]);
  const unpinned = await platform.call<Preview>("DELETE", `${at}/previews/staging/pin`);
  assert.ok(unpinned.body.expires_at !== null && Date.parse(unpinned.body.expires_at) < Date.now() + 73 * 3_600_000);
});

test("where agents deploy to previews only, a person lets their work go live", async () => {
  assert.equal((await platform.call("DELETE", `${at}/previews/staging`)).status, 204);
  await app.commit(files("staged"));
  assert.equal((await app.push()).exitCode, 0);
  assert.equal((await settings({ agents: "preview" })).status, 200);
  const token = { name: "agent", role: "owner", approval_mode: true };
  const { body: made } = await platform.call<{ token: string }>("POST", "/v1/api-tokens", token);
  const asAgent = async (method: string, path: string, sent: object = {}) => {
    const headers = { authorization: `Bearer ${made.token}`, "content-type": "application/json" };
    const answer = await fetch(platform.api + path, { method, headers, body: JSON.stringify(sent) });
    const said = (await answer.json()) as Record<string, string | undefined> & { approval?: { id: string } };
    return { status: answer.status, body: said };
  };
  const change = { files: [{ path: "server.js", text: files("by an agent")["server.js"] }] };
  for (const [method, path, sent] of [
    ["POST", `${at}/deployments`, {}],
    ["POST", `${at}/follow/fetch`, {}],
    ["PUT", `${at}/settings`, { agents: "deploy" }],
  ] as const) {
    const refused = await asAgent(method, path, sent);
    assert.deepEqual([refused.status, refused.body["code"]], [403, "forbidden"], path);
  }
  const header = `Authorization: Basic ${Buffer.from(`agent:${made.token}`).toString("base64")}`;
  await app.commit(files("pushed by an agent"));
  const url = `${platform.api}/git/main/shop.git`;
  const pushed = await app.git("-c", "http.extraHeader=", "-c", `http.extraHeader=${header}`, "push", url, "HEAD:main");
  assert.notEqual(pushed.exitCode, 0);
  assert.match(pushed.stderr, /deploy to previews only[^]*git push berth HEAD:agent[.][^]*berth preview promote agent/);
  const changed = await asAgent("PATCH", `${at}/source`, change);
  assert.equal(changed.status, 201, JSON.stringify(changed.body));
  const { preview } = changed.body as { preview?: { slug: string; branch: string; url: string; text: string } };
  assert.deepEqual([preview?.slug, preview?.branch], ["agent--shop", "agent"]);
  assert.match(
    preview?.text ?? "",
    /agent--shop[^]*shop serves what it served\. [^]*`berth preview promote agent -p shop`/,
  );
  await liveAt("agent--shop", changed.body["commit"]);
  assert.equal(await body("agent--shop"), "by an agent");
  const asked = await asAgent("POST", `${at}/previews/agent/promote`);
  assert.deepEqual([asked.status, asked.body["code"]], [403, "approval_required"]);
  assert.equal(await body("shop"), "staged");
  const later = { files: [{ path: "server.js", text: files("by an agent, later")["server.js"] }] };
  const changedLater = await asAgent("PATCH", "/v1/projects/agent--shop/source", later);
  await liveAt("agent--shop", changedLater.body["commit"]);
  assert.equal(await body("agent--shop"), "by an agent, later");
  const askedLater = await asAgent("POST", `${at}/previews/agent/promote`);
  assert.notEqual(
    askedLater.body.approval?.id,
    asked.body.approval?.id,
    "an approval is for the image that a person saw",
  );
  const page = await decisionPageOf(changedLater.body["commit"] ?? "");
  const { html, nonce } = await page.open();
  assert.match(
    html,
    /Serves now<\/th><td>deployment \d+.*Would serve<\/th>.*\(2 new commits\).*href="http[^"]*agent--shop/s,
  );
  assert.match(html, /Changed files<\/h2><pre>server\.js<\/pre>.*Not rehearsed\./s);
  const reviewed = () => reviewOf(askedLater.body.approval?.id);
  const { files: differing, commits, counts, url: look, rehearsal } = await reviewed();
  assert.match(differing[0]?.lines ?? "", /^\+.*by an agent, later/m);
  assert.deepEqual(
    [differing[0]?.path, commits.length, counts, rehearsal.state],
    ["server.js", 2, { added: 2, removed: 0 }, "not_asked"],
  );
  assert.match(look, /agent--shop/);
  assert.equal((await rehearsals()).length, 0, "an agent's code meets the project's data once a person says so");
  assert.equal((await page.press("rehearse", nonce)).status, 303);
  await eventually(
    async () => /It passed\..*release: 1 row more/s.test((await page.open()).html),
    "the page shows the rehearsal",
  );
  assert.deepEqual(
    [(await reviewed()).rehearsal.state, (await reviewed()).rehearsal.lines],
    ["passed", ["release: 1 row more"]],
  );
  assert.match((await page.open()).html, /href="\/projects\/shop\/compare\?from=\d+&amp;to=\d+"/);
  assert.deepEqual([await body("shop"), (await rehearsals()).length], ["staged", 1]);
  const promoted = await platform.call<{ commit: string }>("POST", `${at}/previews/agent/promote`);
  assert.deepEqual([promoted.status, promoted.body.commit], [201, changedLater.body["commit"]]);
  await eventually(async () => (await body("shop")) === "by an agent, later", "what a person has promoted is live");
  await app.commit(files("by a person"));
  assert.equal((await app.push()).exitCode, 0);
  const note = { files: [{ path: "note.txt", text: "later" }] };
  const stale = await asAgent("PATCH", `${at}/source`, note);
  assert.match(JSON.stringify(stale.body["preview"]), /shop has moved on since this preview began/);
  await liveAt("agent--shop", stale.body["commit"]);
  const askedBehind = await asAgent("POST", `${at}/previews/agent/promote`);
  const apart = await reviewOf(askedBehind.body.approval?.id);
  assert.deepEqual(
    [apart.files.map(({ path }) => path).toSorted(), apart.counts],
    [["note.txt", "release.js", "server.js"], { added: 3, removed: 2 }],
    "neither repository has both commits",
  );
  const fresh = await asAgent("PATCH", `${at}/source`, { ...note, base: "live", expected_commit: await app.head() });
  assert.deepEqual([fresh.status, fresh.body["base"]], [201, await app.head()], JSON.stringify(fresh.body));
  assert.doesNotMatch(JSON.stringify(fresh.body["preview"]), /has moved on/);
  assert.equal((await settings({ agents: "deploy" })).status, 200);
  await eventually(async () => (await rehearsals()).length >= 2, "requests of who may deploy are rehearsed at once");
});

async function reviewOf(approval = "") {
  return (await platform.call<{ review: Review }>("GET", `/v1/approvals/${approval}`)).body.review;
}

async function rehearsals() {
  const { body: all } = await platform.call<{ builds: { rehearse_only: boolean }[] }>("GET", `${at}/builds`);
  return all.builds.filter(({ rehearse_only }) => rehearse_only);
}

/** The page of the approval that is about a commit, for who got its link. */
async function decisionPageOf(commit: string) {
  const outbox = join(platform.dataDir, "outbox");
  const addressOf = (link: string) => new URL(new URL(link).pathname, platform.api).href;
  const link = await eventually(async () => {
    for (const name of readdirSync(outbox)) {
      const found = /http:\S+\/decide\/[\w-]{43}/.exec(readFileSync(join(outbox, name), "utf8"))?.[0];
      if (found !== undefined && (await (await fetch(addressOf(found))).text()).includes(commit)) return found;
    }
    return undefined;
  }, "somebody got the link");
  const url = addressOf(link);
  return {
    async open() {
      const html = await (await fetch(url)).text();
      return { html, nonce: /name="nonce" value="([\w-]+)"/.exec(html)?.[1] ?? "" };
    },
    press: (choice: string, nonce: string) =>
      fetch(url, {
        ...{ method: "POST", redirect: "manual", headers: { origin: new URL(link).origin } },
        body: new URLSearchParams({ choice, nonce }),
      }),
  };
}

test("the project's deletion deletes its previews", async () => {
  assert.equal((await platform.call("DELETE", at)).status, 200);
  await eventually(async () => {
    const { body: all } = await platform.call<{ projects: unknown[] }>(
      "GET",
      "/v1/projects?previews=true&deleted=true",
    );
    return all.projects.length === 2;
  }, "only the deleted project and the other one are left");
});
