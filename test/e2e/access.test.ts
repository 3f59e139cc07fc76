import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { run, runOk, systemPath } from "../../src/kit/exec.ts";
import { until } from "../../src/kit/until.ts";
import { createApp, nodeApp, startPlatform, type TestApp, type TestPlatform } from "./platform.ts";
import { guardMs } from "../support/eventually.ts";

// Drawn with other journey files: it starts whole platforms, which takes too long for every run.

let platform: TestPlatform;
let owner: string;
let app: TestApp;
/** The first part of the project's hostname. Outside of the first organization, it ends in random characters. */
let label: string;

before(async () => {
  platform = await startPlatform();
  const made = await platform.call<{ owner_token: string }>("POST", "/v1/orgs", { slug: "acme", name: "Acme" });
  owner = made.body.owner_token;
  const call = <T>(method: string, path: string, body?: unknown) => callAs<T>(owner, method, path, body);
  app = await createApp({ api: platform.api, org: "acme", token: owner, call }, "shop", nodeApp("open for business"));
  const { body } = await call<{ url: string }>("GET", "/v1/projects/shop");
  label = new URL(body.url).hostname.replace(/\.localhost$/, "");
});
after(() => platform.destroy());

async function callAs<T = Record<string, unknown>>(token: string, method: string, path: string, body?: unknown) {
  const response = await fetch(`${platform.api}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: (text === "" ? {} : JSON.parse(text)) as T };
}

const serves = async (status: number) => ((await platform.visit(label)).status === status ? true : undefined);
const activeId = async () => {
  const { body } = await callAs<{ active_deployment: { id: string } }>(owner, "GET", "/v1/projects/shop");
  return body.active_deployment.id;
};

test("a suspended organization serves 503, rejects its tokens and pushes, and ends its streams; re-enabling it restores the same deployment", async () => {
  assert.equal((await app.push()).exitCode, 0);
  assert.equal((await platform.visit(label)).body, "open for business");
  const deployment = await activeId();
  const headers = { authorization: `Bearer ${owner}` };
  const stream = await fetch(`${platform.api}/v1/projects/shop/logs?follow=true`, { headers });
  assert.equal(stream.status, 200);
  const streamed = stream.text();

  assert.equal((await platform.call("POST", "/v1/orgs/acme/disable")).status, 200);
  const refused = await callAs<{ code: string }>(owner, "GET", "/v1/projects");
  assert.deepEqual([refused.status, refused.body.code], [403, "org_suspended"]);
  assert.match(await streamed, /event: error\ndata: .*"org_suspended"/);
  assert.equal(await until(() => serves(503), { timeoutMs: guardMs }), true);
  await app.commit(nodeApp("pushed while suspended"));
  assert.notEqual((await app.push()).exitCode, 0);

  assert.equal((await platform.call("POST", "/v1/orgs/acme/enable")).status, 200);
  assert.equal(await until(() => serves(200), { timeoutMs: guardMs }), true);
  assert.equal((await platform.visit(label)).body, "open for business");
  assert.equal(await activeId(), deployment);
});

const missingForSsh = ["ssh", "ssh-keygen"].find((name) => !existsSync(`/usr/bin/${name}`));

test(
  "a registered SSH key can push until the token that registered it is revoked",
  {
    skip: missingForSsh && `${missingForSsh} is not installed`,
  },
  async () => {
    const key = join(app.dir, ".git", "key");
    await runOk({ file: "ssh-keygen", args: ["-q", "-t", "ed25519", "-N", "", "-f", key] });
    const made = await callAs<{ token: string; id: string }>(owner, "POST", "/v1/api-tokens", { name: "laptop" });
    const registered = await callAs(made.body.token, "POST", "/v1/ssh-keys", {
      name: "laptop",
      public_key: readFileSync(`${key}.pub`, "utf8").trim(),
    });
    assert.equal(registered.status, 201, JSON.stringify(registered.body));
    const { body: shop } = await callAs<{ git: { ssh: string } }>(owner, "GET", "/v1/projects/shop");
    const pushOverSsh = async (text: string) => {
      await app.commit(nodeApp(text));
      const known =
        "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o IdentitiesOnly=yes -o BatchMode=yes";
      const env = { PATH: systemPath, HOME: app.dir, GIT_SSH_COMMAND: `ssh -i ${key} ${known}` };
      const push = { file: "git", args: ["push", shop.git.ssh, "HEAD:refs/heads/main"] };
      return run(push, { cwd: app.dir, env, timeoutMs: guardMs });
    };
    const pushed = await pushOverSsh("pushed over SSH");
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    assert.equal((await platform.visit(label)).body, "pushed over SSH");

    assert.equal((await callAs(owner, "DELETE", `/v1/api-tokens/${made.body.id}`)).status, 204);
    const refused = await pushOverSsh("pushed by nobody");
    assert.notEqual(refused.exitCode, 0);
    assert.equal((await platform.visit(label)).body, "pushed over SSH");
  },
);

test("without a mail server, the decision link is in the log and in an outbox file that only the operator can read", async () => {
  const made = await callAs<{ token: string }>(owner, "POST", "/v1/api-tokens", { name: "agent", approval_mode: true });
  const agent = made.body.token;
  const remove = () => callAs<{ approval: { id: string } }>(agent, "DELETE", "/v1/projects/shop");
  const asked = await remove();
  assert.equal(asked.status, 403);
  const outbox = join(platform.dataDir, "outbox");
  const file = await until(() => filesIn(outbox).find((name) => name.includes("-approval-")), { timeoutMs: guardMs });
  assert.ok(file);
  assert.equal(statSync(join(outbox, file)).mode & 0o777, 0o600);
  const link = /http:\S+\/decide\/[\w-]{43}/.exec(readFileSync(join(outbox, file), "utf8"))?.[0] ?? "";
  assert.equal(await until(() => platform.output().includes(link) || undefined, { timeoutMs: guardMs }), true);

  const waiting = callAs(agent, "GET", `/v1/approvals/${asked.body.approval.id}?wait=60`);
  const page = new URL(new URL(link).pathname, platform.api).href;
  const html = await (await fetch(page)).text();
  assert.match(html, /DELETE \/v1\/projects\/shop/);
  const nonce = /name="nonce" value="([\w-]+)"/.exec(html)?.[1] ?? "";
  const body = new URLSearchParams({ choice: "approved", nonce });
  const decided = await fetch(page, { method: "POST", headers: { origin: new URL(link).origin }, body });
  assert.equal(decided.status, 200);
  assert.equal((await waiting).body["status"], "approved");
  assert.equal((await remove()).status, 200);
  assert.equal(await until(() => serves(503), { timeoutMs: guardMs }), true);
});

function filesIn(dir: string): readonly string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}
