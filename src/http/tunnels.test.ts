import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { WebSocket } from "ws";
import { testBuild, testDeployment, testProject } from "../../test/support/fixtures.ts";
import { sharedApi, testOrganization } from "../../test/support/test-platform.ts";
import { bearerProtocol, tunnelProtocol } from "../contract/table.ts";

const api = await sharedApi({ http: { tunnels: { heartbeatMs: 3000, idleMs: 0 } } });
const org = await testOrganization(api.database.db, "acme");

/** Opens the tunnel of a new terminal, in which nothing happens. */
async function openTerminal(more: { readonly autoPong?: boolean; readonly asBrowser?: boolean } = {}) {
  const { autoPong = true, asBrowser = false } = more;
  const { id: project_id, slug } = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id };
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  await testDeployment(api.platform, owner, { build_id, number: 1, status: "active" });
  const path = `/v1/projects/${slug}/runs`;
  const { status, body, text } = await api.call("POST", path, {
    token: org.owner,
    body: { command: "bash", terminal: true },
  });
  assert.equal(status, 201, text);
  const url = `${api.baseUrl.replace("http", "ws")}${path}/${(body["run"] as { number: number }).number}/terminal`;
  const headers = asBrowser ? {} : { authorization: `Bearer ${org.owner}` };
  const protocols = asBrowser ? [tunnelProtocol, `${bearerProtocol}${org.owner}`] : [tunnelProtocol];
  return new WebSocket(url, protocols, { headers, autoPong });
}

async function endOf(socket: WebSocket): Promise<[code: number, reason: string]> {
  const [code, reason] = (await once(socket, "close")) as [number, Buffer];
  return [code, reason.toString()];
}

test("a browser, which can send no header, offers its token as a protocol; another token opens nothing", async () => {
  const opened = await openTerminal({ asBrowser: true });
  await once(opened, "open");
  assert.equal(opened.protocol, tunnelProtocol);
  opened.terminate();
  const url = `${api.baseUrl.replace("http", "ws")}/v1/projects/demo/runs/1/terminal`;
  const socket = new WebSocket(url, [tunnelProtocol, `${bearerProtocol}berth_wrong`]);
  const [, response] = (await once(socket, "unexpected-response")) as [unknown, { readonly statusCode: number }];
  assert.equal(response.statusCode, 401);
  socket.on("error", () => {}).terminate();
});

// Both wait for two heartbeats.
describe("a tunnel", { concurrency: true }, () => {
  test("through which nothing passes for too long ends, although its client answers", async () => {
    const end = await endOf(await openTerminal());
    assert.deepEqual(end, [4000, "The tunnel was idle for too long; open it again."]);
  });

  test("ends when its client no longer answers", async () => {
    const end = await endOf(await openTerminal({ autoPong: false }));
    assert.deepEqual(end, [4000, "The tunnel's client no longer answers."]);
  });
});
