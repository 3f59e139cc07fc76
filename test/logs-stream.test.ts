import assert from "node:assert/strict";
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { createDiskLogStore } from "../src/adapters/log-store-disk/disk-log-store.ts";
import { until } from "../src/kit/until.ts";
import { testBuild, testProject } from "./support/fixtures.ts";
import { sharedApi, testOrganization, testToken } from "./support/test-platform.ts";
import { eventually, guardMs } from "./support/eventually.ts";
import { testFolder } from "./support/test-folder.ts";

const logStore = createDiskLogStore({ dir: testFolder("streams") });
const api = await sharedApi({ ports: { logStore }, http: { limits: { streamsPerToken: 3 } } });
const org = await testOrganization(api.database.db, "home", { maxProjects: 100 });

interface Event {
  readonly id: string | undefined;
  readonly event: string | undefined;
  readonly data: { readonly lines?: { text: string }[]; readonly code?: string };
}

/** A client of an event stream. */
async function open(path: string, token: string, lastId?: string) {
  const headers = { authorization: `Bearer ${token}`, ...(lastId === undefined ? {} : { "last-event-id": lastId }) };
  const request = get(`${api.baseUrl}${path}`, { headers, agent: false });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  const events: Event[] = [];
  const state = { ended: false };
  const reading = (async () => {
    let text = "";
    for await (const chunk of response) {
      text += String(chunk);
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1];
        const data = field("data");
        if (data !== undefined) events.push({ id: field("id"), event: field("event"), data: JSON.parse(data) });
      }
    }
  })()
    .catch(() => {})
    .finally(() => (state.ended = true));
  const texts = () => events.flatMap((event) => event.data.lines?.map((line) => line.text) ?? []);
  const lastIdOf = () => events.findLast((event) => event.id !== undefined)?.id;
  return {
    response,
    events,
    texts,
    lastId: lastIdOf,
    ended: () => state.ended,
    sees: async (text: string) =>
      assert.ok(
        await until(async () => texts().includes(text) || undefined, { timeoutMs: guardMs }),
        `the stream did not send ${text}`,
      ),
    async leave() {
      request.destroy();
      await reading;
    },
  };
}

/** Opens a stream with a token that expires soon. On a busy machine the token can expire before the stream opens, so retry with a longer life. */
async function openUntilExpiry(path: string, orgId: string, lifeMs = 1000): ReturnType<typeof open> {
  const { text } = await testToken(api.database.db, orgId, { expires_at: new Date(Date.now() + lifeMs) });
  const stream = await open(path, text);
  return stream.response.statusCode === 200 ? stream : openUntilExpiry(path, orgId, lifeMs * 2);
}

async function write(project: string, from: number, to: number, replica = 0): Promise<void> {
  const at = new Date().toISOString();
  const lines = Array.from({ length: to - from }, (_, index) => ({
    at,
    deployment: 1,
    process: "web",
    replica,
    text: `line ${from + index}`,
  }));
  await logStore.appendRuntime(project, lines);
}

const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `line ${from + index}`);

test("a stream begins with the newest lines, continues with new ones, and resumes at the last received line", async () => {
  const { id, slug } = await testProject(api.platform, org);
  const path = `/v1/projects/${slug}/logs?follow=true&limit=5`;
  await write(id, 0, 10);
  const first = await open(path, org.member);
  assert.equal(first.response.headers["content-type"], "text/event-stream; charset=utf-8");
  await first.sees("line 9");
  await write(id, 10, 12);
  await first.sees("line 11");
  await first.leave();
  assert.deepEqual(first.texts(), numbered(5, 12));
  await write(id, 12, 700);
  const second = await open(path, org.member, first.lastId());
  await second.sees("line 699");
  await write(id, 700, 701);
  await second.sees("line 700");
  await second.leave();
  assert.deepEqual(second.texts(), numbered(12, 701));
  const third = await open(`${path}&after=${second.lastId()}`, org.member);
  await write(id, 701, 702);
  await third.sees("line 701");
  await third.leave();
  assert.deepEqual(third.texts(), ["line 701"]);
});

test("a stream of one replica contains only its lines", async () => {
  const { id, slug } = await testProject(api.platform, org);
  await write(id, 0, 3, 0);
  await write(id, 3, 5, 1);
  const stream = await open(`/v1/projects/${slug}/logs?follow=true&replica=1`, org.member);
  await stream.sees("line 4");
  await write(id, 5, 6, 0);
  await write(id, 6, 7, 1);
  await stream.sees("line 6");
  await stream.leave();
  assert.deepEqual(stream.texts(), ["line 3", "line 4", "line 6"]);
  const page = await api.call("GET", `/v1/projects/${slug}/logs?replica=0&limit=2`, { token: org.member });
  assert.deepEqual(
    (page.body["lines"] as { text: string }[]).map((line) => line.text),
    ["line 2", "line 5"],
  );
});

test("pages and streams filter lines by time and text, and a build's lines by text", async () => {
  const { id, slug } = await testProject(api.platform, org);
  const path = `/v1/projects/${slug}/logs`;
  const hourMs = 3_600_000;
  const write = (hoursAgo: number, text: string) => {
    const at = new Date(Date.now() - hoursAgo * hourMs).toISOString();
    return logStore.appendRuntime(id, [{ at, deployment: 1, process: "web", replica: 0, text }]);
  };
  await write(30, "Error one");
  await write(5, "fine");
  await write(3, "error two");
  const texts = async (query: string) => {
    const { status, body } = await api.call("GET", `${path}?${query}`, { token: org.member });
    assert.equal(status, 200);
    return (body.lines as { text: string }[]).map(({ text }) => text);
  };
  assert.deepEqual(await texts("since=1d"), ["fine", "error two"]);
  assert.deepEqual(await texts("until=4h&grep=ERROR"), ["Error one"]);
  const instant = encodeURIComponent(new Date(Date.now() - 6 * hourMs).toISOString());
  assert.deepEqual(await texts(`since=${instant}&until=4h`), ["fine"]);
  for (const query of ["since=soon", "since=0h", "until=2026-13-01T00:00:00Z", "until=1h&follow=true", "grep="])
    assert.equal((await api.call("GET", `${path}?${query}`, { token: org.member })).status, 400, query);
  assert.equal((await api.call("GET", `${path}?source=build&since=1h`, { token: org.member })).status, 400);

  const stream = await open(`${path}?follow=true&since=4h&grep=error`, org.member);
  await stream.sees("error two");
  await write(0, "fine again");
  await write(0, "error three");
  await stream.sees("error three");
  assert.deepEqual(stream.texts(), ["error two", "error three"]);
  await stream.leave();

  const build = await testBuild(api.platform, { org_id: org.id, project_id: id }, { status: "failed" });
  await logStore.appendBuild(build, ["-----> Build", "npm warn a", "done", "npm WARN b", "npm warn c"]);
  assert.deepEqual(await texts("source=build&grep=warn&limit=2"), ["npm WARN b", "npm warn c"]);
  const first = await texts(`source=build&grep=warn&limit=2&after=${build}:0`);
  assert.deepEqual(first, ["npm warn a", "npm WARN b"]);
});

test("a stream follows a build's log", async () => {
  const { id, slug } = await testProject(api.platform, org);
  const build = await testBuild(api.platform, { org_id: org.id, project_id: id }, { status: "running" });
  await logStore.appendBuild(build, ["-----> Building"]);
  const stream = await open(`/v1/projects/${slug}/logs?follow=true&source=build`, org.member);
  await stream.sees("-----> Building");
  await logStore.appendBuild(build, ["       done"]);
  await stream.sees("       done");
  await stream.leave();
  assert.deepEqual(stream.texts(), ["-----> Building", "       done"]);
});

test("a stream opened before the build gets every line of a build that writes faster than the stream polls", async () => {
  const { id, slug } = await testProject(api.platform, org);
  const path = `/v1/projects/${slug}/logs?follow=true&source=build`;
  const early = await open(path, org.member);
  await until(async () => early.events.length > 0 || undefined, { timeoutMs: guardMs });
  const owner = { org_id: org.id, project_id: id };
  const build = await testBuild(api.platform, owner, { status: "running" });
  await logStore.appendBuild(build, numbered(0, 1000));
  await early.sees("line 999");
  await logStore.appendBuild(build, numbered(1000, 2000));
  await early.sees("line 1999");
  await early.leave();
  assert.deepEqual(early.texts(), numbered(0, 2000));
});

test("a newer build does not cut off the lines of an earlier one that is still running", async () => {
  const { id, slug } = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id: id };
  const first = await testBuild(api.platform, owner, { status: "running" });
  const stream = await open(`/v1/projects/${slug}/logs?follow=true&source=build`, org.member);
  await logStore.appendBuild(first, numbered(0, 1));
  await stream.sees("line 0");
  const second = await testBuild(api.platform, owner, { status: "queued" });
  await logStore.appendBuild(second, ["second build"]);
  await logStore.appendBuild(first, numbered(1, 900));
  await stream.sees("line 899");
  await api.database.db.updateTable("build").set({ status: "failed" }).where("id", "=", first).execute();
  await stream.sees("second build");
  await stream.leave();
  assert.deepEqual(stream.texts(), [...numbered(0, 900), "second build"]);
});

test("a stream ends with the reason when its token is revoked or expires, or its organization is suspended", async () => {
  const { db } = api.database;
  const other = await testOrganization(db, "other");
  const { slug } = await testProject(api.platform, other);
  const path = `/v1/projects/${slug}/logs?follow=true`;
  const token = await testToken(db, other.id, {});
  const revoked = await open(path, token.text);
  const done = await api.call("DELETE", `/v1/api-tokens/${token.id}`, { token: other.owner });
  assert.equal(done.status, 204);
  await until(async () => revoked.ended() || undefined, { timeoutMs: guardMs });
  assert.ok(revoked.ended());
  assert.equal(revoked.events.at(-1)?.event, "error");
  assert.equal(revoked.events.at(-1)?.data.code, "unauthorized");
  const expired = await openUntilExpiry(path, other.id);
  await until(async () => expired.ended() || undefined, { timeoutMs: guardMs });
  assert.equal(expired.events.at(-1)?.data.code, "unauthorized");
  const suspended = await open(path, other.member);
  const disabled = await api.call("POST", "/v1/orgs/other/disable", { token: org.operator });
  assert.equal(disabled.status, 200, disabled.text);
  await until(async () => suspended.ended() || undefined, { timeoutMs: guardMs });
  assert.equal(suspended.events.at(-1)?.data.code, "org_suspended");
});

test("a token has a limited number of open streams, and a closed stream frees its slot", async () => {
  const { db } = api.database;
  const { slug } = await testProject(api.platform, org);
  const path = `/v1/projects/${slug}/logs?follow=true`;
  const token = (await testToken(db, org.id, {})).text;
  const streams = [await open(path, token), await open(path, token), await open(path, token)];
  const refused = await api.call("GET", path, { token });
  assert.equal(refused.status, 429, refused.text);
  assert.ok(refused.headers.get("retry-after"));
  await streams[0]?.leave();
  const again = await until(
    async () => {
      const stream = await open(path, token);
      if (stream.response.statusCode === 200) return stream;
      await stream.leave();
      return undefined;
    },
    { timeoutMs: guardMs },
  );
  assert.ok(again !== undefined);
  for (const stream of [...streams, again]) await stream.leave();
});

test("for a client that does not read, the server reads a few pages instead of the whole log", async () => {
  const { id, slug } = await testProject(api.platform, org);
  const at = new Date().toISOString();
  const lines = Array.from({ length: 3000 }, () => ({
    at,
    deployment: 1,
    process: "web",
    replica: 0,
    text: "x".repeat(9000),
  }));
  await logStore.appendRuntime(id, lines);
  let read = 0;
  const { readRuntime } = logStore;
  logStore.readRuntime = async (project, query) => {
    read += 1;
    return readRuntime(project, query);
  };
  const socket = connect(api.port, "127.0.0.1");
  socket.pause();
  socket.write(
    `GET /v1/projects/${slug}/logs?follow=true&after=0:0 HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${org.member}\r\n\r\n`,
  );
  await eventually(() => read >= 1, "the first page is read");
  await new Promise((resolve) => setTimeout(resolve, 1500));
  assert.ok(read < 12, `the server read ${read} pages for a client that does not read`);
  socket.destroy();
  logStore.readRuntime = readRuntime;
});

test("a log is filtered by the level that its lines name, and each line has its own", async () => {
  const { id, slug } = await testProject(api.platform, org);
  const at = new Date().toISOString();
  const texts = [`{"level":50,"msg":"x"}`, "WARN x", "[info] x", "x"];
  const lines = texts.map((text) => ({ at, deployment: 1, process: "web", replica: 0, text }));
  await logStore.appendRuntime(id, lines);
  const read = async (query: string) => {
    const { body } = await api.call("GET", `/v1/projects/${slug}/logs${query}`, { token: org.member });
    return (body["lines"] as { level: string | null }[]).map(({ level }) => level);
  };
  assert.deepEqual(await read(""), ["error", "warn", "info", null]);
  assert.deepEqual(await read("?level=warn"), ["error", "warn"]);
});
