import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import { sharedApi, testOrganization } from "../../test/support/test-platform.ts";
import { addressKey } from "../kit/address-key.ts";

const limits = { readsPerMinute: 5, writesPerMinute: 3, refusedPerMinute: 4 };
const api = await sharedApi({ http: { limits, edgeHeaders: async () => ({ "x-edge-key": "of the edge" }) } });
const org = await testOrganization(api.database.db, "acme");

const read = (token?: string) => api.call("GET", "/v1/projects", { token });

test("a token may read so often in a minute and write so often; each answer says what is left", async () => {
  for (const left of ["4", "3", "2", "1", "0"]) {
    const { status, headers } = await read(org.owner);
    assert.deepEqual([status, headers.get("ratelimit-limit"), headers.get("ratelimit-remaining")], [200, "5", left]);
    const seconds = Number(headers.get("ratelimit-reset"));
    assert.ok(seconds > 0 && seconds <= 60);
  }
  const refused = await read(org.owner);
  assert.deepEqual([refused.status, refused.body["code"]], [429, "rate_limited"]);
  assert.equal(refused.headers.get("retry-after"), refused.headers.get("ratelimit-reset"));
  // Failed requests count too, and their answers have the headers.
  for (const status of [400, 400, 400, 429]) {
    const called = await api.call("POST", "/v1/projects", { token: org.owner, body: {} });
    assert.equal(called.status, status);
    assert.equal(called.headers.get("ratelimit-limit"), "3");
  }
});

test("one token's limit is not another's", async () => {
  assert.equal((await read(org.member)).status, 200);
});

test("guessing is limited by address, and locks nobody out who has a token", async () => {
  const guesses = await Promise.all(Array.from({ length: 10 }, () => read("berth_o_wrong")));
  assert.equal(guesses.filter(({ status }) => status === 401).length, 4);
  assert.equal(guesses.filter(({ status }) => status === 429).length, 6);
  assert.equal((await read(org.operator)).status, 200);
});

test("guesses over the platform's own edge count for the client that the edge names; a stranger's header counts for nothing", async () => {
  const guess = async (client: string, key: string) => {
    const headers = { authorization: "Bearer berth_o_wrong", "x-forwarded-for": client, "x-edge-key": key };
    const answer = await fetch(`${api.baseUrl}/v1/projects`, { headers });
    await answer.body?.cancel();
    return answer.status;
  };
  for (const status of [401, 401, 401, 401, 429]) assert.equal(await guess("203.0.113.1", "of the edge"), status);
  assert.equal(await guess("203.0.113.2", "of the edge"), 401);
  // The test before used up this address's guesses.
  for (const key of ["", "wrong", "of the edgf"]) assert.equal(await guess("203.0.113.3", key), 429);
});

test("a refused WebSocket counts for the client that the edge names", async () => {
  const open = (client: string) =>
    new Promise<number>((resolve, reject) => {
      const headers = {
        ...{ authorization: "Bearer berth_o_wrong", connection: "upgrade", upgrade: "websocket" },
        ...{ "x-forwarded-for": client, "x-edge-key": "of the edge" },
      };
      const asked = request(`${api.baseUrl}/v1/projects/none/database/tunnels/tun_1`, { headers });
      asked
        .on("error", reject)
        .on("response", (answer) => resolve(answer.resume().statusCode ?? 0))
        .end();
    });
  for (const status of [401, 401, 401, 401, 429]) assert.equal(await open("203.0.113.8"), status);
  assert.equal(await open("203.0.113.9"), 401);
});

test("what needs no token is limited by address", async () => {
  const all = await Promise.all(Array.from({ length: 7 }, () => api.call("GET", "/v1/capabilities")));
  assert.equal(all.filter(({ status }) => status === 200).length, 5);
});

test("an address is the whole of IPv4, and the network of IPv6", () => {
  assert.equal(addressKey("192.0.2.7"), "192.0.2.7");
  assert.equal(addressKey("::ffff:192.0.2.7"), "192.0.2.7");
  assert.equal(addressKey("2001:db8:1:2:3:4:5:6"), addressKey("2001:db8:1:2::9"));
  assert.notEqual(addressKey("2001:db8:1:2::9"), addressKey("2001:db8:1:3::9"));
  assert.equal(addressKey("fe80::1%eth0"), addressKey("fe80::2"));
});
