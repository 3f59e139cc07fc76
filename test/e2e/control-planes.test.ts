import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { softAuthenticator } from "../support/authenticator.ts";
import { answerOf, consentBrowser, nonceOf, proof } from "../support/consent.ts";
import { testDatabase, type TestDatabase } from "../support/database.ts";
import { eventually, guardMs } from "../support/eventually.ts";
import { client, followTo, startIssuer } from "../support/issuer.ts";
import { createApp, launch, layGround, nodeApp, startPlatform, type TestApp, type TestPlatform } from "./platform.ts";
import { startMember, type Member } from "./members.ts";

// Drawn with other operation files: it starts whole platforms, which takes too long for every run.

// Three control planes share one PostgreSQL: the primary, a second one with its own edge, and one that only serves the API.
let database: TestDatabase;
let primary: TestPlatform;
let second: Member;
let apiOnly: Member;
let app: TestApp;
const received: string[] = [];
const receiver = createServer((request, response) => {
  received.push(String(request.headers["webhook-id"]));
  request.resume();
  response.end();
});

const calls = `const calls = []; require("node:http").createServer((request, response) => {
  if (request.url === "/tick") calls.push(request.headers["x-berth-run"] ?? "run");
  console.log("asked " + request.url);
  response.end(request.url === "/calls" ? String(calls.length) : "hello");
}).listen(process.env.PORT, process.env.HOST);`;

before(async () => {
  database = await testDatabase();
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  const shared = { BERTH_DATABASE_URL: urlOf(database.connection), BERTH_OUTGOING_NETWORKS: "127.0.0.0/8" };
  primary = await startPlatform(shared);
  const settings = { ...shared, BERTH_KEY_FILE: `${primary.dataDir}/secrets.key` };
  second = await startMember("api,reconcile,edge", settings);
  // On another address of this machine, so that people reach both under the platform's one address, as behind a load balancer.
  const oneAddress = { BERTH_LISTEN: "127.0.0.3", BERTH_HTTP_PORT: new URL(primary.api).port };
  apiOnly = await startMember("api", { ...settings, ...oneAddress });
  app = await createApp({ ...through(apiOnly), token: primary.token }, "demo", {
    ...nodeApp("x"),
    "server.js": calls,
  });
});
after(async () => {
  await apiOnly?.end();
  await second?.end();
  await primary?.destroy();
  await database?.drop();
  receiver.close();
});

function urlOf({ host = "", port, user = "", password, database: name = "" }: TestDatabase["connection"]): string {
  const query = new URLSearchParams({
    host,
    port: String(port),
    user,
    ...(password ? { password: String(password) } : {}),
  });
  return `postgresql:///${name}?${query.toString()}`;
}

/** Returns an API client of one control plane. */
function through({ api }: Pick<Member, "api">, token = primary.token) {
  return {
    api,
    async call<T = Record<string, unknown>>(method: string, path: string, body?: unknown) {
      const headers = {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      };
      const response = await fetch(`${api}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      return { status: response.status, headers: response.headers, body: (text === "" ? {} : JSON.parse(text)) as T };
    },
  };
}

/** Requests the application through an edge and returns the status and the body. */
async function visit(edgePort: number, path = "/"): Promise<string> {
  const { request } = await import("node:http");
  return new Promise((resolve) => {
    const asked = request({
      host: "127.0.0.1",
      port: edgePort,
      path,
      headers: { host: "demo.localhost" },
      agent: false,
    });
    asked.on("response", (response) => {
      let text = "";
      response
        .on("data", (chunk: Buffer) => (text += chunk.toString()))
        .on("end", () => resolve(`${response.statusCode} ${text}`));
    });
    asked.on("error", (error) => resolve(String(error))).end();
  });
}

test("each control plane reports its roles, and the platform overview lists all three", async () => {
  const rolesOf = async ({ api }: Pick<Member, "api">) =>
    ((await (await fetch(`${api}/readyz`)).json()) as { roles: string[] }).roles.join();
  assert.deepEqual(await Promise.all([primary, second, apiOnly].map(rolesOf)), [
    "api,git,reconcile,edge",
    "api,reconcile,edge",
    "api",
  ]);
  const named = await eventually(async () => {
    const { body } = await through(apiOnly).call<{ machines: { roles: string[] }[] }>("GET", "/v1/platform/overview");
    return body.machines.length === 3 ? body.machines.map(({ roles }) => roles.join()).toSorted() : undefined;
  }, "the overview lists three machines");
  assert.deepEqual(named, ["api", "api,git,reconcile,edge", "api,reconcile,edge"]);
});

test("a second primary on the database is refused", async () => {
  const key = { BERTH_KEY_FILE: `${primary.dataDir}/secrets.key` };
  const { env, dataDir } = await layGround({ BERTH_DATABASE_URL: urlOf(database.connection), ...key });
  const child = launch(env);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise((resolve) => child.once("close", resolve));
  rmSync(dataDir, { recursive: true, force: true });
  assert.equal(code, 1);
  assert.match(output, /primary control plane, with its repositories and applications, is on /);
});

test("a token created on one control plane is valid on all; revoked on another one, it is rejected by all", async () => {
  const body = { name: "short", role: "member", scopes: ["projects:read"] };
  const made = await through(second).call<{ id: string; token: string }>("POST", "/v1/api-tokens", body);
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const all = [primary, second, apiOnly];
  const statuses = () =>
    Promise.all(all.map(async (each) => (await through(each, made.body.token).call("GET", "/v1/projects")).status));
  assert.deepEqual(await statuses(), [200, 200, 200]);
  assert.equal((await through(apiOnly).call("DELETE", `/v1/api-tokens/${made.body.id}`)).status, 204);
  // Without the notification, a cached token stays valid for a minute.
  await eventually(
    async () => (await statuses()).every((status) => status === 401),
    "all control planes reject the token",
    30_000,
  );
});

test("a push through the API-only control plane is live on both edges, and every control plane serves its log", async () => {
  const changes = await fetch(`${second.api}/v1/activity/changes?follow=true`, {
    ...following(),
  });
  const pushed = await app.push();
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  assert.deepEqual([await visit(primary.edgePort), await visit(second.edgePort)], ["200 hello", "200 hello"]);
  assert.match(await firstEvents(changes, /"deployment"/), /"deployment"/);
  for (const each of [primary, second, apiOnly]) {
    const logs = await fetch(`${each.api}/v1/projects/demo/logs?follow=true`, {
      ...following(),
    });
    assert.match(await firstEvents(logs, /asked \//), /asked \//);
  }
});

function following() {
  return { headers: { authorization: `Bearer ${primary.token}` }, signal: AbortSignal.timeout(guardMs) };
}

/** Reads an event stream until it matches `wanted`. */
async function firstEvents(response: Response, wanted: RegExp): Promise<string> {
  assert.equal(response.status, 200);
  let text = "";
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  while (reader !== undefined && !wanted.test(text)) {
    const { done, value } = await reader.read();
    if (done) break;
    text += value;
  }
  await reader?.cancel();
  return text;
}

type Plane = Pick<Member, "api">;
const originOf = ({ api }: Plane) => api.replace(/127\.0\.0\.\d/, "localhost");
const cookieIn = ({ headers }: Response) => (headers.get("set-cookie") ?? "").split(";")[0] ?? "";
const bodyOf = async (response: Response) => (await response.json()) as Record<string, unknown>;

/** Sends what the sign-in page of one control plane sends. */
function atPage(plane: Plane, path: string, body: object, cookie = ""): Promise<Response> {
  const headers = { "content-type": "application/json", origin: originOf(plane), "x-berth-dashboard": "1", cookie };
  return fetch(`${plane.api}/session/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
}

async function inviteCode(plane: Plane, body: object = {}): Promise<string> {
  const invited = await through(plane).call<{ url: string }>("POST", "/v1/invites", body);
  assert.equal(invited.status, 201, JSON.stringify(invited.body));
  return new URL(invited.body.url).hash.slice(1);
}

/** Returns how each control plane answers a token. */
const statusesOf = (token: string) =>
  Promise.all(
    [primary, second, apiOnly].map(async (each) => (await through(each, token).call("GET", "/v1/me")).status),
  );

/** Joins as a person with a passkey: one control plane begins it, another one finishes it. */
async function joined(name: string) {
  const device = softAuthenticator(originOf(primary));
  const code = await inviteCode(apiOnly, { role: "owner" });
  const { options } = await bodyOf(await atPage(primary, "join", { code, name }));
  const passkey = device.create(options as never, { origin: originOf(second) });
  const done = await atPage(second, "join", { code, name, passkey });
  assert.equal(done.status, 200);
  const late = await atPage(apiOnly, "join", { code, name: "Late" });
  assert.equal(late.status, 401, "the invitation is used everywhere");
  return { device, cookie: cookieIn(done) };
}

test("a sign-in link of one control plane works at another, once", async () => {
  const made = await fetch(`${primary.api}/session/link`, {
    ...{ method: "POST", headers: { authorization: `Bearer ${primary.token}` } },
  });
  const code = new URL(String((await bodyOf(made))["url"])).hash.slice(1);
  const open = (plane: Plane) =>
    fetch(`${plane.api}/session`, {
      method: "POST",
      headers: { "content-type": "application/json", origin: originOf(plane), "x-berth-dashboard": "1" },
      body: JSON.stringify({ code }),
    });
  assert.equal((await bodyOf(await open(apiOnly)))["token"], primary.token);
  for (const plane of [primary, second, apiOnly]) assert.equal((await open(plane)).status, 401);
});

test("a sign-in by passkey that one control plane began is finished by another, once, and ends on all", async () => {
  const { device } = await joined("Ada");
  const { options } = await bodyOf(await atPage(second, "passkey", {}));
  const sign = (plane: Plane) => device.get(options as never, { origin: originOf(plane) });
  const passkey = sign(apiOnly);
  const entered = await atPage(apiOnly, "passkey", { passkey });
  const token = String((await bodyOf(entered))["token"]);
  for (const plane of [primary, second, apiOnly])
    assert.equal((await atPage(plane, "passkey", { passkey: sign(plane) })).status, 401, "an answer works once");
  assert.deepEqual(await statusesOf(token), [200, 200, 200]);
  assert.equal((await bodyOf(await atPage(primary, "resume", {}, cookieIn(entered))))["token"], token);
  assert.equal((await through(second, token).call("POST", "/v1/me/sessions/end")).status, 204);
  await eventually(async () => (await statusesOf(token)).every((status) => status === 401), "the session has ended");
});

test("a program that one control plane registered is allowed at another and exchanges its code at a third, once", async () => {
  const { cookie } = await joined("Grace");
  const redirect_uri = "http://127.0.0.1:33418/callback";
  const registering = await fetch(`${primary.api}/oauth/register`, {
    ...{ method: "POST", headers: { "content-type": "application/json" } },
    body: JSON.stringify({ client_name: "Agent", redirect_uris: [redirect_uri] }),
  });
  const client_id = String((await bodyOf(registering))["client_id"]);
  const { verifier, challenge } = proof();
  const asked = {
    response_type: "code",
    client_id,
    redirect_uri,
    code_challenge: challenge,
    code_challenge_method: "S256",
  };
  const path = `/session/authorize?${new URLSearchParams(asked).toString()}`;
  const { html } = await consentBrowser(apiOnly.api, cookie).load(path);
  const form = { choice: "allow", organization: "main", reach: "all", days: "90", nonce: nonceOf(html) };
  const decided = await consentBrowser(second.api, cookie).post(path, form);
  const code = answerOf(decided.headers).get("code") ?? "";
  const exchange = ({ api }: Plane) =>
    fetch(`${api}/oauth/token`, {
      method: "POST",
      body: new URLSearchParams({
        grant_type: "authorization_code",
        code,
        client_id,
        redirect_uri,
        code_verifier: verifier,
      }),
    });
  const token = String((await bodyOf(await exchange(primary)))["access_token"]);
  const atTools = async ({ api }: Plane) => {
    const headers = {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    return (await fetch(`${api}/mcp`, { method: "POST", headers, body })).status;
  };
  const all = () => Promise.all([primary, second, apiOnly].map(atTools));
  assert.deepEqual(await all(), [200, 200, 200]);
  assert.equal((await bodyOf(await exchange(apiOnly)))["error"], "invalid_grant");
  await eventually(
    async () => (await all()).every((status) => status === 401),
    "a code that is used twice ends its token",
  );
});

test("a command line's code is typed at one control plane, allowed at another, and fetched from a third", async () => {
  const { cookie } = await joined("Lin");
  const post = async ({ api }: Plane, path: string, form: Record<string, string>) =>
    bodyOf(await fetch(`${api}${path}`, { method: "POST", body: new URLSearchParams(form) }));
  const started = await post(primary, "/oauth/device", { client_id: "berth-cli", device_name: "laptop" });
  const user_code = String(started["user_code"]);
  const poll = (plane: Plane) =>
    post(plane, "/oauth/token", {
      grant_type: "urn:ietf:params:oauth:grant-type:device_code",
      ...{ device_code: String(started["device_code"]), client_id: "berth-cli" },
    });
  assert.equal((await poll(second))["error"], "authorization_pending");
  const first = await consentBrowser(apiOnly.api, cookie).load("/session/device");
  const open = { user_code, choice: "open", nonce: nonceOf(first.html) };
  const { html } = await consentBrowser(primary.api, cookie).post("/session/device", open);
  const form = { user_code, choice: "allow", organization: "main", reach: "all", days: "90", nonce: nonceOf(html) };
  assert.equal((await consentBrowser(second.api, cookie).post("/session/device", form)).status, 200);
  const token = String((await poll(apiOnly))["access_token"]);
  assert.deepEqual(await statusesOf(token), [200, 200, 200]);
  assert.equal((await poll(primary))["error"], "invalid_grant");
});

test("a sign-in by a provider that one control plane began arrives at another", async () => {
  const issuer = await startIssuer([`${originOf(primary)}/session/oidc/company/callback`]);
  const provider = { kind: "oidc", name: "Company", issuer: issuer.url, ...client };
  const set = await through(second).call("PUT", "/v1/platform/providers/company", provider);
  assert.equal(set.status, 200, JSON.stringify(set.body));
  const started = await atPage(primary, "oidc/company", { to: "join", code: await inviteCode(second) });
  const cookie = cookieIn(started);
  const { pathname, search } = new URL(await followTo(String((await bodyOf(started))["url"])));
  const arrive = () => fetch(`${apiOnly.api}${pathname}${search}`, { redirect: "manual", headers: { cookie } });
  const arrived = await arrive();
  assert.equal(arrived.status, 303, await arrived.text());
  const session = arrived.headers.getSetCookie().find((each) => each.startsWith("berth_session=")) ?? "";
  const resumed = await atPage(primary, "resume", {}, session.split(";")[0]);
  assert.deepEqual(await statusesOf(String((await bodyOf(resumed))["token"])), [200, 200, 200]);
  assert.equal((await arrive()).status, 401);
});

test("with two schedulers each event is delivered once and each cron job is called once", async () => {
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  const hook = { name: "receiver", url, events: ["deployment"] };
  const made = await through(apiOnly).call<{ id: string }>("POST", "/v1/webhooks", hook);
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const { id } = made.body;
  for (let sent = 0; sent < 5; sent += 1)
    assert.equal((await through(apiOnly).call("POST", `/v1/webhooks/${id}/test`)).status, 201);
  const job = { schedule: "0 0 1 1 *", path: "/tick" };
  assert.equal((await through(second).call("PUT", "/v1/projects/demo/cron/tick", job)).status, 201);
  assert.equal((await through(apiOnly).call("POST", "/v1/projects/demo/cron/tick/run")).status, 201);
  await eventually(async () => {
    type Page = { deliveries: { status: string }[] };
    const { body } = await through(second).call<Page>("GET", `/v1/webhooks/${id}/deliveries`);
    return body.deliveries.length >= 5 && body.deliveries.every(({ status }) => status === "delivered");
  }, "all events are delivered");
  assert.equal(received.length, new Set(received).size);
  await eventually(
    async () => (await visit(second.edgePort, "/calls")) === "200 1",
    "the cron job has called the application",
  );
  // If a scheduler is killed before it records the end of a run, the job stays busy for a while.
  await eventually(async () => {
    const { body } = await through(second).call<{ runs: { status: string }[] }>(
      "GET",
      "/v1/projects/demo/cron/tick/runs",
    );
    return body.runs.every(({ status }) => status === "succeeded");
  }, "all cron runs have succeeded");
});

test("with the primary killed, the others serve what the database holds, refuse the rest, and take over its jobs", async () => {
  await primary.end("SIGKILL");
  assert.deepEqual(await visit(second.edgePort), "200 hello");
  const { call } = through(apiOnly);
  assert.equal((await call("GET", "/v1/projects/demo/deployments")).status, 200);
  assert.equal((await call("GET", "/v1/me")).status, 200);
  const refused = await call("GET", "/v1/projects/demo/logs");
  assert.deepEqual([refused.status, refused.body["code"]], [503, "unavailable"]);
  assert.ok(Number(refused.headers.get("retry-after")) > 0);
  assert.notEqual((await app.push()).exitCode, 0);
  assert.equal((await call("POST", "/v1/projects/demo/cron/tick/run")).status, 201);
  await eventually(
    async () => (await visit(second.edgePort, "/calls")) === "200 2",
    "the second control plane has run the cron job",
  );
  await primary.restart();
  await app.commit({ "note.txt": "again" });
  const pushed = await app.push();
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  assert.deepEqual([await visit(primary.edgePort), await visit(second.edgePort)], ["200 hello", "200 hello"]);
});
