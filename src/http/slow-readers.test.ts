import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { eventually } from "../../test/support/eventually.ts";
import { testProject } from "../../test/support/fixtures.ts";
import { logStoreDouble } from "../../test/support/port-doubles.ts";
import { sharedApi, testOrganization, testToken } from "../../test/support/test-platform.ts";

// More than the buffers of both ends hold, so the server has to wait for its client.
const line = { at: new Date(0).toISOString(), deployment: 1, process: "web", replica: 0, text: "x".repeat(10_000) };
const logStore = logStoreDouble({
  readRuntime: async () => ({ lines: Array.from({ length: 3000 }, () => line), cursor: "0:0" }),
});

const limits = { largeReadsPerToken: 2, stalledAnswerTimeoutMs: 2000, headersTimeoutMs: 1000 };
const api = await sharedApi({ ports: { logStore }, http: { limits } });
const org = await testOrganization(api.database.db, "acme");
await testProject(api.platform, org, "demo");

/** Requests a large answer and reads only its beginning. */
async function stall(token: string): Promise<Socket> {
  const socket = connect(api.port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(`GET /v1/projects/demo/logs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n\r\n`);
  await once(socket, "readable");
  return socket;
}

const small = "/v1/projects/demo/logs?source=build";
const read = (token: string) => api.call("GET", small, { token });

test("a token may have few large reads open, which others and its other requests do not feel; who takes nothing is cut off", async () => {
  const sockets: Socket[] = [];
  // On a busy machine the server may have closed both connections before the next request.
  const refused = await eventually(async () => {
    sockets.push(await stall(org.member), await stall(org.member));
    const answer = await read(org.member);
    return answer.status === 429 && answer;
  }, "a third large read is refused");
  assert.equal(refused.body["code"], "rate_limited");
  assert.match(String(refused.headers.get("retry-after")), /^\d+$/);
  assert.equal((await read(org.owner)).status, 200);
  assert.equal((await api.call("GET", "/v1/projects", { token: org.member })).status, 200);
  const write = await api.call("POST", "/v1/projects", { token: org.member, body: { slug: "new", name: "New" } });
  assert.equal(write.status, 201);
  await eventually(async () => (await read(org.member)).status !== 429, "who takes nothing is cut off");
  for (const socket of sockets) socket.destroy();
});

test("a read that has ended in any way no longer counts", async () => {
  const get = (path: string) => api.call("GET", path, { token: org.owner });
  for (let n = 0; n < 20; n += 1) {
    // The client disconnects before the server has looked up its token, which is not cached yet.
    const { text } = await testToken(api.database.db, org.id, { role: "owner" });
    for (let each = 0; each < 3; each += 1) {
      const other = connect(api.port, "127.0.0.1");
      other.end(`GET ${small} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${text}\r\n\r\n`, () =>
        other.destroy(),
      );
      await once(other, "close");
    }
    await eventually(async () => (await read(text)).status !== 429, "the ended reads no longer count");
  }
  for (let n = 0; n < 5; n += 1) {
    assert.equal((await get(small)).status, 200);
    assert.equal((await get("/v1/projects/never/logs")).status, 404);
    assert.equal((await get("/v1/projects/demo/logs?limit=0")).status, 400);
    (await stall(org.owner)).destroy();
    await eventually(async () => (await get(small)).status !== 429, "the ended reads no longer count");
  }
});

test("a connection that is opened ahead and not used ends without an answer; half a request gets one", async () => {
  const answerTo = async (sent: string) => {
    const socket = connect(api.port, "127.0.0.1");
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
    if (sent !== "") socket.write(sent);
    await once(socket, "close");
    return text;
  };
  const [unused, half] = await Promise.all([answerTo(""), answerTo("GET / HTTP/1.1\r\n")]);
  assert.equal(unused, "");
  assert.match(half, /^HTTP\/1\.1 400 /);
});
