import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import { WebSocket } from "ws";
import { tunnelProtocol } from "../../contract/table.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { testThings } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization, testToken } from "../../../test/support/test-platform.ts";
import { openDecision } from "../approvals/approvals.ts";
import { authenticate } from "./tokens.ts";

const api = await sharedApi();
const { db } = api.database;
const org = await testOrganization(db, "home", { maxProjects: 100 });
const own = await testThings(api.platform, org);
const beside = await testThings(api.platform, org);
const limited = await testToken(db, org.id, { role: "owner", project_ids: [own.project.id] });

const get = (path: string, token = limited.text) => api.call("GET", path, { token });
const create = (token: string, body: object) => api.call("POST", "/v1/api-tokens", { token, body });

let counter = 0;
/** Leaves a row in every list for both projects, and one of the organization. */
async function changeBoth(): Promise<void> {
  for (const { project } of [own, beside]) {
    const path = `/v1/projects/${project.slug}/env/SIZE`;
    assert.equal((await api.call("PUT", path, { token: org.owner, body: { value: String(counter++) } })).status, 204);
  }
  assert.equal((await create(org.owner, { name: "of the organization" })).status, 201);
}

test("lists, overview, activity and approvals of a limited token hold only what belongs to its projects", async () => {
  await changeBoth();
  const paths = ["/v1/projects", "/v1/projects?deleted=true", "/v1/overview", "/v1/activity", "/v1/approvals"];
  for (const path of paths) {
    const { status, text } = await get(path);
    assert.equal(status, 200, text);
    assert.ok(text.includes(own.project.slug) || path === "/v1/approvals", `${path} lacks its own project`);
    for (const foreign of [beside.project.slug, beside.project.id, beside.approval, "of the organization"])
      assert.ok(!text.includes(foreign), `${path} shows ${foreign}`);
  }
  const overview = (await get("/v1/overview")).body["totals"] as { projects: number; approvals_pending: number };
  assert.deepEqual([overview.projects, overview.approvals_pending], [1, 0]);
  const approvals = (await get("/v1/approvals")).body["approvals"] as { id: string }[];
  assert.deepEqual(
    approvals.map(({ id }) => id),
    [own.approval],
  );
});

test("callers who read the same at once get what is theirs, not older than what they wrote, and nothing once their token has ended", async () => {
  const other = await testOrganization(db, "elsewhere");
  const same = await testThings(api.platform, other);
  const { slug } = own.project;
  await db.updateTable("project").set({ slug }).where("id", "=", same.project.id).execute();
  const ending = await testToken(db, org.id, { role: "owner", project_ids: [own.project.id] });
  const slugs = async (token: string) => {
    const { status, body } = await get("/v1/projects", token);
    return status === 200 ? (body["projects"] as { slug: string }[]).map((project) => project.slug) : status;
  };
  const pathIn = async (token: string) => (await get(`/v1/projects/${slug}`, token)).body["health_path"];
  const crowd = async () => {
    const all = Array.from({ length: 8 }, () => [slugs(limited.text), slugs(org.owner), slugs(other.owner)] as const);
    for (const [narrow, wide, foreign] of all) {
      assert.deepEqual([await narrow, await foreign], [[slug], [slug]]);
      assert.deepEqual(((await wide) as string[]).toSorted(), [slug, beside.project.slug].toSorted());
    }
  };
  for (let round = 0; round < 5; round += 1) {
    const crowded = Promise.all([crowd(), crowd()]);
    const paths = [`/ours/${round}`, `/theirs/${round}`] as const;
    const write = async (token: string, health_path: string) => {
      await api.call("PUT", `/v1/projects/${slug}/settings`, { token, body: { health_path } });
      return Promise.all([pathIn(token), pathIn(token)]);
    };
    const read = await Promise.all([write(org.owner, paths[0]), write(other.owner, paths[1])]);
    assert.deepEqual(read, [
      [paths[0], paths[0]],
      [paths[1], paths[1]],
    ]);
    const [foreign, missing] = await Promise.all([
      get(`/v1/projects/${beside.project.slug}`),
      get("/v1/projects/none"),
      get(`/v1/projects/${beside.project.slug}`, org.owner),
    ]);
    assert.deepEqual([foreign.status, foreign.text], [missing.status, missing.text]);
    await crowded;
  }
  const reading = crowd();
  assert.equal((await api.call("DELETE", `/v1/api-tokens/${ending.id}`, { token: org.owner })).status, 204);
  await eventually(async () => (await slugs(ending.text)) === 401, "a token that has ended joins no reading");
  await reading;
  await api.call("DELETE", `/v1/projects/${slug}`, { token: other.owner });
  assert.deepEqual([await slugs(other.owner), await pathIn(org.owner)], [[], "/ours/4"]);
});

test("the stream of changes tells a limited token nothing of other projects and of the organization", async () => {
  const { body } = await get("/v1/activity/changes");
  const after = String(body["next_cursor"]);
  await changeBoth();
  await eventually(async () => {
    const all = (await get(`/v1/activity/changes?after=${after}`, org.owner)).text;
    return all.includes(beside.project.slug) && all.includes('"project":null');
  }, "an unlimited token sees the changes of both");
  const found = (await get(`/v1/activity/changes?after=${after}`)).body["changes"] as { project: string | null }[];
  assert.deepEqual([...new Set(found.map(({ project }) => project))], [own.project.slug]);
});

test("a limited token follows the request that it made itself, and no person limited to other projects decides it", async () => {
  const agent = await testToken(db, org.id, { project_ids: [own.project.id], approval_mode: true });
  const asked = await create(agent.text, { name: "another" });
  assert.equal(asked.body["code"], "approval_required", asked.text);
  const { id } = asked.body["approval"] as { id: string };
  assert.equal((await get(`/v1/approvals/${id}`, agent.text)).status, 200);
  assert.match((await get("/v1/approvals", agent.text)).text, new RegExp(id));
  assert.equal((await get(`/v1/approvals/${id}`)).status, 404);
  const decider = async (text: string) => ({ id, caller: (await authenticate(db, text))?.caller as never });
  assert.equal(await openDecision(db, await decider(limited.text), new Date()), undefined);
  assert.ok(await openDecision(db, await decider(org.owner), new Date()));
});

test("a limited token creates only tokens within its projects", async () => {
  const { project } = own;
  const made = await create(limited.text, { name: "same", role: "owner" });
  assert.deepEqual([made.status, made.body["projects"]], [201, [project.slug]]);
  const named = await create(limited.text, { name: "named", projects: [project.slug, project.slug] });
  assert.deepEqual(named.body["projects"], [project.slug]);
  const [foreign, missing] = [
    await create(limited.text, { name: "more", projects: [project.slug, beside.project.slug] }),
    await create(limited.text, { name: "more", projects: [project.slug, "never-made"] }),
  ];
  assert.deepEqual([foreign.status, foreign.body["code"]], [400, "invalid_request"]);
  assert.equal(foreign.text.replaceAll(beside.project.slug, "never-made"), missing.text);
  assert.equal((await create(org.owner, { name: "x", projects: [] })).status, 400);
  const both = await create(org.owner, { name: "both", projects: [project.slug, beside.project.slug] });
  assert.deepEqual(both.body["projects"], [project.slug, beside.project.slug].toSorted());
  const me = await get("/v1/me", String(both.body["token"]));
  assert.deepEqual((me.body["token"] as { projects: string[] }).projects, both.body["projects"]);
});

test("a limited owner token is not the owner token that keeps an organization reachable", async () => {
  const small = await testOrganization(db, "small");
  const { project } = await testThings(api.platform, small);
  await testToken(db, small.id, { role: "owner", project_ids: [project.id] });
  await db
    .updateTable("api_token")
    .set({ revoked_at: new Date() })
    .where("org_id", "=", small.id)
    .where("platform_admin", "=", true)
    .execute();
  const { id } = (await get("/v1/me", small.owner)).body["token"] as { id: string };
  const deleted = await api.call("DELETE", `/v1/api-tokens/${id}`, { token: small.owner });
  assert.equal(deleted.body["code"], "last_owner_token");
});

test("a later project with the slug of a purged one is not reached, and a renamed project still is", async () => {
  const { project } = await testThings(api.platform, org);
  const token = await testToken(db, org.id, { role: "owner", project_ids: [project.id] });
  const path = `/v1/projects/${project.slug}`;
  const renamed = await api.call("POST", `${path}/rename`, { token: token.text, body: { slug: `${project.slug}-2` } });
  assert.equal(renamed.status, 200, renamed.text);
  assert.equal((await get(`${path}-2`, token.text)).status, 200);
  await db.deleteFrom("earlier_name").where("project_id", "=", project.id).execute();
  const again = { slug: project.slug, name: "Later" };
  assert.equal((await api.call("POST", "/v1/projects", { token: org.owner, body: again })).status, 201);
  assert.equal((await get(path, token.text)).status, 404);
  assert.equal((await get(path, org.owner)).status, 200);
});

/** Returns the response to an upgrade that is refused. */
async function upgrade(path: string) {
  const socket = new WebSocket(`${api.baseUrl.replace("http", "ws")}${path}`, [tunnelProtocol], {
    headers: { authorization: `Bearer ${limited.text}` },
  });
  socket.on("error", () => {});
  const [, response] = (await once(socket, "unexpected-response")) as [unknown, IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return [response.statusCode, Buffer.concat(chunks).toString()] as const;
}

test("tunnels, terminals, uploads and streams of another project are missing to a limited token", async () => {
  const { slug } = beside.project;
  for (const rest of ["/runs/1/terminal", "/database/tunnels/tun_1"]) {
    const [theirs, missing] = [await upgrade(`/v1/projects/${slug}${rest}`), await upgrade(`/v1/projects/zzz${rest}`)];
    assert.equal(theirs[0], 404);
    assert.deepEqual(theirs, missing);
  }
  const upload = (of: string) =>
    api.call("PUT", `/v1/projects/${of}/source`, {
      token: limited.text,
      body: new Uint8Array(512),
      headers: { "content-type": "application/x-tar" },
    });
  const stream = (of: string) => get(`/v1/projects/${of}/logs?follow=true`);
  for (const call of [upload, stream]) {
    const [theirs, missing] = [await call(slug), await call("zzz")];
    assert.deepEqual([theirs.status, theirs.text], [404, missing.text]);
  }
});
