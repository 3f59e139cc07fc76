import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, test } from "node:test";
import type { Result } from "../../src/contract/routes.ts";
import { until } from "../../src/kit/until.ts";
import { startDnsServer, type TestDnsServer } from "../support/dns-server.ts";
import { startPlatform, type TestPlatform } from "./platform.ts";
import { guardMs } from "../support/eventually.ts";

// Drawn with other journey files: each starts whole platforms, and a run has no time for all of them.

let dns: TestDnsServer;
let platform: TestPlatform;
before(async () => {
  dns = await startDnsServer();
  platform = await startPlatform({ BERTH_DNS_SERVERS: dns.address, BERTH_PUBLIC_ADDRESSES: "127.0.0.1" });
});
after(async () => {
  await platform.destroy();
  await dns.close();
});

type Domain = Result<"domains.attach">;

/** What the edge says of a host: `unknown_host`, or that the project has nothing deployed yet. */
function edgeAnswer(host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request(
      { host: "127.0.0.1", port: platform.edgePort, headers: { host }, agent: false },
      (response) => {
        response.resume();
        resolve(String(response.headers["x-berth-error"]));
      },
    );
    asked.on("error", reject).end();
  });
}

test("a running platform finds new records by itself and opens its edge for the name", async () => {
  const hostname = "www.shop.test";
  const unknown = await edgeAnswer(hostname);
  await platform.call("POST", "/v1/projects", { slug: "shop", name: "Shop" });
  const { body } = await platform.call<Domain>("POST", "/v1/projects/shop/domains", { hostname });
  assert.deepEqual([body.dns_status, body.instructions.values], ["pending", ["127.0.0.1"]]);
  assert.equal(await edgeAnswer(hostname), unknown);
  dns.set(hostname, { type: "A", value: "127.0.0.1" });
  const limits = { timeoutMs: guardMs, atMostMs: 1000 };
  const isServed = await until(async () => ((await edgeAnswer(hostname)) === unknown ? undefined : true), limits);
  assert.ok(isServed, "the edge knows the name");
  const { body: listed } = await platform.call<{ domains: Domain[] }>("GET", "/v1/projects/shop/domains");
  assert.deepEqual(
    listed.domains.map((domain) => [domain.hostname, domain.dns_status, domain.serving]),
    [[hostname, "ok", true]],
  );
});
