import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { testProject } from "../../test/support/fixtures.ts";
import { sharedApi, testOrganization } from "../../test/support/test-platform.ts";

const api = await sharedApi({ http: { limits: { sourceRequestsPerOrganization: 2 } } });
const org = await testOrganization(api.database.db, "acme");
await testProject(api.platform, org, "demo");

const mib = 1024 * 1024;

/** Sends the head of a request and the start of its body; resolves with the connection and what comes back, if anything does, in a moment. */
async function begin(token: string, head: string) {
  const { hostname, port } = new URL(api.baseUrl);
  const socket = connect(Number(port), hostname);
  const lines = ["PATCH /v1/projects/demo/source HTTP/1.1", "host: localhost", "content-type: application/json"];
  socket.write([...lines, `authorization: Bearer ${token}`, head, "", '9\r\n{"files":\r\n'].join("\r\n"));
  const answer = await Promise.race([
    once(socket, "data").then(([data]) => String(data)),
    new Promise<null>((resolve) => setTimeout(resolve, 300, null)),
  ]);
  return { socket, answer };
}

test("a large body is read only with a valid token; a usual one is judged first", async () => {
  for (const head of [`content-length: ${4 * mib}`, "transfer-encoding: chunked"]) {
    const { socket, answer } = await begin("wrong", head);
    assert.match(answer ?? "it is read", /^HTTP\/1\.1 401 /);
    socket.destroy();
  }
  const usual = await begin("wrong", `content-length: ${mib / 8}`);
  assert.equal(usual.answer, null);
  usual.socket.destroy();
});

test("an organization sends few large bodies at a time", async () => {
  const head = `content-length: ${4 * mib}`;
  const open = [await begin(org.owner, head), await begin(org.member, head)];
  assert.deepEqual(
    open.map(({ answer }) => answer),
    [null, null],
  );
  const third = await begin(org.owner, head);
  assert.match(third.answer ?? "", /^HTTP\/1\.1 429 [^]*organization has 2 requests with large bodies/);
  third.socket.destroy();
  for (const { socket } of open) {
    socket.destroy();
    await once(socket, "close");
  }
  const files = [{ path: "a", text: "x".repeat(mib) }];
  const path = "/v1/projects/demo/plan";
  const later = await api.call("POST", path, { token: org.owner, body: { files, ref: "main" } });
  assert.deepEqual([later.status, later.body["code"]], [400, "invalid_request"]);
});
