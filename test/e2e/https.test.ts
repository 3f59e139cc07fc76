// Runs alone: it sends hundreds of requests a second and must not lose one; tests that compete for the CPU would distort the result.
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { connect } from "node:tls";
import { mapWithConcurrency } from "../../src/kit/map-with-concurrency.ts";
import { makeCertificate } from "../../src/ports/edge-stage.suite.ts";
import type { EdgeCertificate } from "../../src/ports/edge.ts";
import { startDnsServer, type TestDnsServer } from "../support/dns-server.ts";
import { runsAll } from "../support/draw-cases.ts";
import { eventually } from "../support/eventually.ts";
import { edgePid, servingPid, withoutHaproxy } from "../support/edges.ts";
import { freePort } from "../support/free-port.ts";
import { liveApp } from "./apps.ts";
import { createApp, startPlatform, type TestApp, type TestPlatform } from "./platform.ts";
import { killProcesses, listProcesses, processesNaming } from "./processes.ts";
import { ask, failures, openTalk, startTraffic, summary } from "./traffic.ts";

// Drawn with other operation files: it starts whole platforms, which takes too long for every run.

const perSecond = runsAll ? 200 : 100;
const hostnames = runsAll ? 200 : 20;
const deploys = runsAll ? 20 : 4;
/** Duration of the outage of control plane and database, in seconds of traffic. */
const outageSeconds = Number(process.env["BERTH_TEST_OUTAGE_SECONDS"] ?? (runsAll ? 60 : 10));
// A project can have at most a hundred hostnames, so the names are spread over projects.
const projects = ["calm", "hasty", "still"] as const;

describe("on HAProxy, over HTTPS", { skip: withoutHaproxy }, () => {
  let dns: TestDnsServer;
  let folder: string;
  let certificates: readonly [EdgeCertificate, EdgeCertificate];
  let platform: TestPlatform;
  let edge: { readonly port: number; readonly ca: readonly string[] };
  const apps = new Map<string, TestApp>();
  let version = 0;

  before(async () => {
    dns = await startDnsServer();
    folder = mkdtempSync(join(tmpdir(), "berth-https-"));
    // Node.js rejects a wildcard directly below a top-level domain.
    const names = [...projects.map((slug) => `${slug}.localhost`), "*.shop.test"];
    certificates = [await makeCertificate(names), await makeCertificate(names)];
    edge = { port: await freePort(), ca: certificates.map(({ chain_pem }) => chain_pem) };
    installCertificate(certificates[0]);
    platform = await startPlatform({
      ...{ BERTH_EDGE_TLS_PORT: `${edge.port}`, BERTH_CERTIFICATE_FILES: join(folder, "pem") },
      ...{ BERTH_DNS_SERVERS: dns.address, BERTH_PUBLIC_ADDRESSES: "127.0.0.1" },
      ...{ BERTH_READS_PER_MINUTE: "1000000", BERTH_WRITES_PER_MINUTE: "1000000" },
    });
    for (const slug of projects) {
      const onTerm = slug === "hasty" ? "exit" : "finish";
      apps.set(slug, await createApp(platform, slug, liveApp({ version: `${slug} 0`, onTerm })));
      await push(slug, onTerm);
    }
    await eventually(async () => (await ask(edge, "calm", "/")).status === 200, "the edge serves HTTPS");
  });
  after(async () => {
    await platform?.destroy();
    await dns?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test(
    `no request fails and no open connection breaks during ${hostnames} new and removed hostnames, ${deploys} deploys, a reload and a new certificate`,
    { timeout: 1_800_000 },
    async (t) => {
      const traffic = startTraffic(edge, projects, perSecond);
      t.after(() => traffic.stop());
      const open = await openTalk(edge, "still");
      const worker = servingPid(join(platform.dataDir, "haproxy"));
      const names = Array.from({ length: hostnames }, (_, i) => `name-${i}.shop.test`);
      const half = hostnames / 2;
      await Promise.all([attach(names.slice(0, half)), pushTimes(deploys / 2), changeCertificate()]);
      assert.equal(
        servingPid(join(platform.dataDir, "haproxy")),
        worker,
        "hostnames, deploys or a certificate reloaded HAProxy",
      );
      await platform.end("SIGKILL");
      await platform.restart({ BERTH_TRUSTED_PROXIES: "192.0.2.1" });
      const isReloaded = () => servingPid(join(platform.dataDir, "haproxy")) !== worker;
      await eventually(isReloaded, "the changed setting has reloaded HAProxy");
      await Promise.all([attach(names.slice(half)), detach(names.slice(0, half)), pushTimes(deploys / 2)]);
      await detach(names.slice(half));
      const answers = await traffic.stop();
      t.diagnostic(summary(answers));
      assert.deepEqual(failures(answers, isKnown).slice(0, 5), []);
      assert.equal(open.ended(), null, "an open connection was cut");
      assert.ok(open.answered() > 10);
      assert.equal(await open.close(), 1000);
    },
  );

  test(
    `no request of ${perSecond} a second fails while control plane and database are down for ${outageSeconds} s`,
    { timeout: (outageSeconds + 600) * 1000 },
    async (t) => {
      const traffic = startTraffic(edge, projects, perSecond);
      t.after(() => traffic.stop());
      const open = await openTalk(edge, "still");
      await platform.end("SIGKILL");
      const database = processesNaming(join(platform.dataDir, "control-database"));
      assert.ok(database.length > 0, "the control plane's database runs");
      killProcesses(database);
      const until = traffic.count() + outageSeconds * perSecond;
      await eventually(() => traffic.count() >= until, "the outage is over", (outageSeconds + 300) * 1000);
      assert.deepEqual(
        processesNaming(join(platform.dataDir, "control-database")),
        [],
        "the database is down until the end of the outage",
      );
      await platform.restart({ BERTH_TRUSTED_PROXIES: "192.0.2.1" });
      const answers = await traffic.stop();
      t.diagnostic(summary(answers));
      assert.deepEqual(failures(answers, isKnown).slice(0, 5), []);
      assert.equal(open.ended(), null, "an open connection was cut");
      await open.close();
    },
  );

  test("a killed HAProxy comes back with every hostname and certificate", { timeout: 600_000 }, async (t) => {
    const names = ["kept-1.shop.test", "kept-2.shop.test"];
    await attach(names);
    const master = edgePid(join(platform.dataDir, "haproxy"));
    killProcesses(listProcesses().filter((each) => each.pid === master || each.parent === master));
    const killedAtMs = performance.now();
    const isBack = async () =>
      (await Promise.all([...projects, ...names].map((name) => ask(edge, name, "/")))).every(
        ({ status }) => status === 200,
      );
    await eventually(isBack, "every hostname is served again");
    t.diagnostic(`back after ${Math.round(performance.now() - killedAtMs)} ms`);
    // The new HAProxy serves a moment before Berth records its process id.
    await eventually(() => edgePid(join(platform.dataDir, "haproxy")) !== master, "another process serves");
    await detach(names);
  });

  const isKnown = (body: string) => /^(calm|hasty|still) \d+$/.test(body);

  function installCertificate({ chain_pem, key_pem }: EdgeCertificate): void {
    writeFileSync(join(folder, "new"), chain_pem + key_pem, { mode: 0o600 });
    renameSync(join(folder, "new"), join(folder, "pem"));
  }

  async function changeCertificate(): Promise<void> {
    const next = new X509Certificate(certificates[1].chain_pem).serialNumber;
    installCertificate(certificates[1]);
    await eventually(async () => (await shownSerial()) === next, "new connections get the new certificate");
  }

  function shownSerial(): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", servername: "calm.localhost", ...edge, ca: [...edge.ca] }, () => {
        resolve(socket.getPeerCertificate().serialNumber);
        socket.destroy();
      });
      socket.on("error", reject);
    });
  }

  async function push(slug: string, onTerm: "exit" | "finish"): Promise<void> {
    version += 1;
    await apps.get(slug)?.commit(liveApp({ version: `${slug} ${version}`, onTerm }));
    const pushed = await apps.get(slug)?.push();
    assert.equal(pushed?.exitCode, 0, pushed?.stderr);
  }

  async function pushTimes(times: number): Promise<void> {
    for (let i = 0; i < times; i += 1) await (i % 2 === 0 ? push("calm", "finish") : push("hasty", "exit"));
  }

  const projectOf = (hostname: string) => projects[Number(/\d+/.exec(hostname)?.[0]) % 3] as string;

  /** Attaches hostnames that resolve to this machine, and waits until each is served over HTTPS. */
  async function attach(names: readonly string[]): Promise<void> {
    await mapWithConcurrency(names, 4, async (hostname) => {
      dns.set(hostname, { type: "A", value: "127.0.0.1" });
      const { status, body } = await platform.call("POST", `/v1/projects/${projectOf(hostname)}/domains`, { hostname });
      assert.equal(status, 201, JSON.stringify(body));
      const isServed = async () => (await ask(edge, hostname, "/")).body.startsWith(projectOf(hostname));
      await eventually(isServed, `${hostname} is served`);
    });
  }

  async function detach(names: readonly string[]): Promise<void> {
    await mapWithConcurrency(names, 4, async (hostname) => {
      const { status } = await platform.call("DELETE", `/v1/projects/${projectOf(hostname)}/domains/${hostname}`);
      assert.equal(status, 204);
      await eventually(async () => (await ask(edge, hostname, "/")).status === 404, `${hostname} is no longer served`);
    });
  }
});
