// Drawn with other journey files: it starts a whole platform, which takes too long for every run.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Result } from "../../src/contract/routes.ts";
import { cliUser, type CliUser } from "../support/cli.ts";
import { eventually } from "../support/eventually.ts";
import { makeRemote, serveHttps, type RemoteFolder } from "../support/git-remotes.ts";
import { startPlatform, type TestPlatform } from "./platform.ts";

const at = "/v1/projects/shop";
const slug = "feature-more--shop";

let remote: RemoteFolder;
let server: Awaited<ReturnType<typeof serveHttps>>;
let platform: TestPlatform;
let person: CliUser;
let hook: { readonly hook_url: string; readonly secret: string };

/** Every release adds a row, which the page then shows. */
const release = (
  text: string,
) => `const client = new (require("pg").Client)({ connectionString: process.env.DATABASE_URL });
client.connect().then(() => client.query("create table if not exists release (text text); insert into release values ('${text}')"))
  .then(() => client.end());`;
const page = (text: string) => `require("http").createServer(async (req, res) => {
  const client = new (require("pg").Client)({ connectionString: process.env.DATABASE_URL });
  await client.connect();
  const { rows } = await client.query("select text from release");
  await client.end();
  res.end(JSON.stringify(["${text}", ...rows.map((row) => row.text)]));
}).listen(process.env.PORT);`;

async function publish(text: string, branch: string): Promise<string> {
  writeFileSync(join(remote.root, "work", "release.js"), release(text));
  const commit = await remote.push(page(text), { branch, file: "server.js" });
  await deliver(branch, commit);
  return commit;
}

/** Sends what Gitea sends after a push. */
async function deliver(branch: string, commit: string): Promise<void> {
  const body = JSON.stringify({ ref: `refs/heads/${branch}`, before: "0".repeat(40), after: commit });
  const hex = createHmac("sha256", hook.secret).update(body).digest("hex");
  const headers = { "x-gitea-event": "push", "x-gitea-delivery": commit, "x-gitea-signature": hex };
  const { pathname } = new URL(hook.hook_url);
  const { status } = await fetch(platform.api + pathname, { method: "POST", body, headers });
  assert.equal(status, 202);
}

before(async () => {
  remote = await makeRemote();
  server = await serveHttps(remote);
  const trusted = join(remote.root, "trusted.pem");
  const usual = process.env["SSL_CERT_FILE"] ?? "/etc/ssl/certs/ca-certificates.crt";
  writeFileSync(trusted, `${readFileSync(usual, "utf8")}\n${readFileSync(remote.caFile, "utf8")}`);
  platform = await startPlatform({ BERTH_CA_FILE: trusted, BERTH_OUTGOING_NETWORKS: "127.0.0.0/8" });
  person = await cliUser({ url: platform.api, token: platform.token });
  const made = (method: string, path: string, body: object) =>
    platform.call<Record<string, string>>(method, path, body);
  assert.equal((await made("POST", "/v1/projects", { slug: "shop", name: "shop" })).status, 201);
  assert.equal((await made("POST", `${at}/database`, {})).status, 201);
  const work = join(remote.root, "work");
  writeFileSync(join(work, "package.json"), `{"name":"shop","private":true,"dependencies":{"pg":"8.23.1"}}`);
  writeFileSync(join(work, "Procfile"), "web: node server.js\nrelease: node release.js\n");
  const followed = await made("PUT", `${at}/follow`, {
    url: server.url.replace("localhost", "127.0.0.1"),
    branch: "main",
    provider: "gitea",
  });
  assert.equal(followed.status, 200, JSON.stringify(followed.body));
  hook = followed.body as unknown as typeof hook;
  assert.equal((await made("PUT", `${at}/settings`, { previews: ["*"], preview_data: "branch" })).status, 200);
});
after(async () => {
  await person?.[Symbol.asyncDispose]();
  await platform?.destroy();
  await server?.close();
  await remote?.close();
});

const shown = async (of: string) => (await platform.visit(of)).body;
const serves = (of: string, ...texts: string[]) =>
  eventually(async () => (await shown(of)) === JSON.stringify(texts), `${of} serves ${texts.join(", ")}`);
const get = async <T>(path: string) => (await platform.call<T>("GET", path)).body;
const imageIn = (log: string) => /Image (\w+)/.exec(log)?.[1];

test("a followed branch runs in its preview on a branch of the data, and its very image goes live, rehearsed", async () => {
  await publish("one", "main");
  await serves("shop", "one", "one");
  const commit = await publish("two", "feature/more");
  await serves(slug, "two", "one", "two");
  assert.equal(await shown("shop"), '["one","one"]', "the project has its own data");
  const { builds } = await get<Result<"builds.list">>(`/v1/projects/${slug}/builds`);
  const { log } = await get<Result<"builds.logs">>(`/v1/builds/${builds[0]?.id}/logs`);
  const promoted = await person.berth(["preview", "promote", "feature/more", "-p", "shop", "--json"]);
  assert.equal(promoted.exitCode, 0, promoted.stderr);
  const live = JSON.parse(promoted.stdout) as Result<"deployments.list">["deployments"][number];
  assert.deepEqual([live.commit, await shown("shop")], [commit, '["two","one","two"]']);
  const made = await get<Result<"builds.logs">>(`/v1/builds/${live.build_id}/logs`);
  assert.match(made.log, /Taking the image of feature-more--shop/);
  assert.ok(imageIn(log));
  assert.equal(imageIn(made.log), imageIn(log));
  const { rehearsal } = await get<Result<"deployments.rehearsal">>(`${at}/deployments/${live.number}/rehearsal`);
  const rows = rehearsal?.report?.tables.find(({ table }) => table === "public.release");
  assert.deepEqual([rehearsal?.status, rows?.rows_before, rows?.rows_after], ["passed", 1, 2], "on the project's data");
});

test("a merged branch is built with the project's variables and rehearsed; the preview ends with its branch", async () => {
  const commit = await publish("three", "feature/more");
  await serves(slug, "three", "one", "two", "three");
  await remote.run("push", "-q", remote.bare, "HEAD:refs/heads/main", ":refs/heads/feature/more");
  await deliver("main", commit);
  await deliver("feature/more", "0".repeat(40));
  await serves("shop", "three", "one", "two", "three");
  const { deployments } = await get<Result<"deployments.list">>(`${at}/deployments`);
  const { rehearsal } = await get<Result<"deployments.rehearsal">>(
    `${at}/deployments/${deployments[0]?.number}/rehearsal`,
  );
  const rows = rehearsal?.report?.tables.find(({ table }) => table === "public.release");
  assert.deepEqual([rehearsal?.status, rows?.rows_before, rows?.rows_after], ["passed", 2, 3], "on the project's data");
  await eventually(async () => (await platform.visit(slug)).status === 404, "the preview is gone with its branch");
});
