import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, test } from "node:test";
import type { Result } from "../../src/contract/routes.ts";
import { until } from "../../src/kit/until.ts";
import { startDnsServer, type TestDnsServer } from "../support/dns-server.ts";
import { cliUser } from "../support/cli.ts";
import { freePort } from "../support/free-port.ts";
import { startKnot, withoutKnot } from "../support/knot.ts";
import { startPebble, withoutPebble } from "../support/pebble.ts";
import { createApp, nodeApp, startPlatform, type TestPlatform } from "./platform.ts";
import { ask } from "./traffic.ts";
import { guardMs } from "../support/eventually.ts";

// Drawn with other journey files: it starts whole platforms, which takes too long for every run.

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

/** Returns the edge's error code for a host: `unknown_host`, or the code for a project without a deployment. */
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

test("a running platform detects new DNS records and makes its edge serve the hostname", async () => {
  const hostname = "www.shop.test";
  const unknown = await edgeAnswer(hostname);
  await platform.call("POST", "/v1/projects", { slug: "shop", name: "Shop" });
  const { body } = await platform.call<Domain>("POST", "/v1/projects/shop/domains", { hostname });
  assert.deepEqual([body.dns_status, body.instructions.values], ["pending", ["127.0.0.1"]]);
  assert.equal(await edgeAnswer(hostname), unknown);
  dns.set(hostname, { type: "A", value: "127.0.0.1" });
  const limits = { timeoutMs: guardMs, atMostMs: 1000 };
  const isServed = await until(async () => ((await edgeAnswer(hostname)) === unknown ? undefined : true), limits);
  assert.ok(isServed, "the edge serves the hostname");
  const { body: listed } = await platform.call<{ domains: Domain[] }>("GET", "/v1/projects/shop/domains");
  assert.deepEqual(
    listed.domains.map((domain) => [domain.hostname, domain.dns_status, domain.serving]),
    [[hostname, "ok", true]],
  );
});

test(
  "`berth domains add --wait` ends when visitors who trust the authority are answered over HTTPS, and prints a clock of the steps",
  { skip: withoutPebble || withoutKnot, timeout: 600_000 },
  async (t) => {
    const [hostname, edgePort, tlsPort] = ["www.shop.test", await freePort(), await freePort()];
    await using closing = new AsyncDisposableStack();
    const knot = closing.adopt(await startKnot("."), (server) => server.close());
    const dnsServer = `127.0.0.1:${knot.port}`;
    const pebble = closing.adopt(await startPebble({ dnsServer, httpPort: edgePort }), (authority) => authority.stop());
    const settings = {
      BERTH_PUBLIC_ADDRESSES: "127.0.0.1",
      ...{ BERTH_EDGE_PORT: `${edgePort}`, BERTH_EDGE_TLS_PORT: `${tlsPort}`, BERTH_ACME_HTTP_PORT: `${edgePort}` },
      ...{ BERTH_DNS_SERVERS: dnsServer, BERTH_ACME_DIRECTORY: pebble.directory, BERTH_ACME_CA_FILE: pebble.caFile },
    };
    const own = closing.adopt(await startPlatform(settings), (started) => started.destroy());
    const app = await createApp(own, "shop", nodeApp("the shop"));
    assert.equal((await app.push()).exitCode, 0);
    const edge = { port: tlsPort, ca: [await pebble.roots()] };
    assert.equal((await ask(edge, hostname, "/")).status, 0, "without a certificate, the edge rejects the connection");
    await knot.set(hostname, { type: "A", value: "127.0.0.1" });
    const user = closing.use(await cliUser({ url: own.api, token: own.token }));
    const added = await user.berth(["domains", "add", hostname, "--wait", "-p", "shop"]);
    assert.equal(added.exitCode, 0, added.stderr);
    assert.match(added.stdout, /^www\.shop\.test is served over HTTPS\.$/m);
    const clock = Array.from(added.stdout.matchAll(/^ +(\d+\.\d) s +(.*)$/gm), ([, seconds, step]) => ({
      seconds,
      step,
    }));
    for (const { seconds, step } of clock) t.diagnostic(`${seconds} s: ${step}`);
    assert.equal(clock[0]?.step, "The DNS records point here, and the name is served over HTTP.");
    assert.equal(clock.at(-1)?.step, "The name is served over HTTPS.");
    const { status, body, error } = await ask(edge, hostname, "/");
    assert.deepEqual([status, body, error, pebble.orders()], [200, "the shop", null, 1]);
  },
);
