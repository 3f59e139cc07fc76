import assert from "node:assert/strict";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { sampleDomain } from "../../test/support/contract-samples.ts";
import { goodToken, startScriptedPlatform } from "../../test/support/scripted-platform.ts";

const login = (url: string) => ({ url, token: goodToken });

test("adding a hostname shows every record to create, and the alias that may stand instead", async () => {
  await using platform = await startScriptedPlatform({ "domains.attach": () => sampleDomain() });
  await using user = await cliUser(login(platform.url));
  const { exitCode, stdout } = await user.berth(["domains", "add", "www.example.com", "-p", "demo"]);
  assert.equal(exitCode, 0);
  assert.match(stdout, /A +www\.example\.com\. +192\.0\.2\.1/);
  assert.match(stdout, /TXT +_berth\.www\.example\.com\. +berth-proof=1/);
  assert.match(stdout, /CNAME +www\.example\.com\. +demo\.apps\.example\.net/);
});

test("--redirect-to names the other hostname, --no-redirect none, and the answer shows where requests go", async () => {
  const bodies: unknown[] = [];
  await using platform = await startScriptedPlatform({
    "domains.attach": ({ body }) => {
      bodies.push(body);
      return sampleDomain({ redirect_to: "example.com" });
    },
  });
  await using user = await cliUser(login(platform.url));
  const add = (...rest: string[]) => user.berth(["domains", "add", "www.example.com", "-p", "demo", ...rest]);
  assert.match((await add("--redirect-to", "example.com")).stdout, /^www\.example\.com → example\.com {2}pending/);
  await add("--no-redirect");
  await add();
  const hostname = "www.example.com";
  assert.deepEqual(bodies, [{ hostname, redirect_to: "example.com" }, { hostname, redirect_to: null }, { hostname }]);
});

test("without a record to create, the answer ends with the reason", async () => {
  const { instructions } = sampleDomain();
  const domain = sampleDomain({ instructions: { ...instructions, records: [], alias: null, note: "No address yet." } });
  await using platform = await startScriptedPlatform({ "domains.attach": () => domain });
  await using user = await cliUser(login(platform.url));
  const { stdout } = await user.berth(["domains", "add", "www.example.com", "-p", "demo"]);
  assert.match(stdout, /No address yet\.\n$/);
});

test("--wait asks until the name is served, and prints one document", async () => {
  let asked = 0;
  await using platform = await startScriptedPlatform({
    "domains.attach": () => sampleDomain(),
    "domains.list": () => ({ domains: [sampleDomain((asked += 1) < 2 ? {} : { dns_status: "ok", serving: true })] }),
  });
  await using user = await cliUser(login(platform.url));
  const { exitCode, stdout } = await user.berth([
    "domains",
    "add",
    "www.example.com",
    "--wait",
    "-p",
    "demo",
    "--json",
  ]);
  assert.equal(exitCode, 0);
  assert.equal((JSON.parse(stdout) as { serving: boolean }).serving, true);
  assert.equal(asked, 2);
});

test("--wait goes on until the certificate that the platform orders is there, and ends with its reason when it fails", async () => {
  const served = { dns_status: "ok", serving: true } as const;
  const next = { ssl_next_attempt_at: "2026-01-01T00:00:00.000Z" };
  const states = [
    { ...served, ...next },
    { ...served, ssl_next_attempt_at: null, ssl_status: "issuing", ssl_detail: "Berth is ordering the certificate." },
    { ...served, ...next, ssl_status: "active", ssl_detail: "Valid until 2026-03-01." },
  ] as const;
  let asked = 0;
  await using platform = await startScriptedPlatform({
    "domains.attach": () => sampleDomain(),
    "domains.list": () => ({ domains: [sampleDomain(states[asked++ % states.length])] }),
  });
  await using user = await cliUser(login(platform.url));
  const added = await user.berth(["domains", "add", "www.example.com", "--wait", "-p", "demo"]);
  assert.equal(added.exitCode, 0, added.stderr);
  assert.match(added.stdout, /www\.example\.com is served over HTTPS\./);
  const steps = Array.from(added.stdout.matchAll(/^ +\d+\.\d s +(.*)$/gm), ([, step]) => step);
  assert.deepEqual(steps, [
    "The DNS records point here, and the name is served over HTTP.",
    "Berth is ordering the certificate.",
    "The name is served over HTTPS.",
  ]);
  assert.equal(asked, states.length);
  await using refusing = await startScriptedPlatform({
    "domains.attach": () => sampleDomain(),
    "domains.list": () => ({
      domains: [sampleDomain({ ...served, ...next, ssl_status: "failed", ssl_detail: "The port is closed." })],
    }),
  });
  await using other = await cliUser(login(refusing.url));
  const failed = await other.berth(["domains", "add", "www.example.com", "--wait", "-p", "demo"]);
  assert.equal(failed.exitCode, 1);
  assert.match(failed.stderr, /no certificate yet: The port is closed\./);
});

test("the list shows what a name's certificate waits for, once its records are right", async () => {
  const next = { ssl_status: "issuing", ssl_next_attempt_at: null } as const;
  const domain = sampleDomain({ dns_status: "ok", serving: true, ...next, ssl_detail: "The name is being verified." });
  await using platform = await startScriptedPlatform({ "domains.list": () => ({ domains: [domain] }) });
  await using user = await cliUser(login(platform.url));
  const { stdout } = await user.berth(["domains", "-p", "demo"]);
  assert.match(stdout, /www\.example\.com .*The name is being verified\./);
});

test("a check fails as long as a name does not lead here, and says what is missing", async () => {
  let isReady = false;
  await using platform = await startScriptedPlatform({
    "domains.list": () => ({ domains: [sampleDomain(isReady ? { dns_status: "ok", serving: true } : {})] }),
  });
  await using user = await cliUser(login(platform.url));
  const check = (...args: string[]) => user.berth(["domains", "check", ...args, "-p", "demo"]);
  const early = await check("WWW.example.com.");
  assert.equal(early.exitCode, 1);
  assert.match(early.stdout, /no address in DNS yet/);
  assert.match(early.stderr, /dns_not_ready/);
  isReady = true;
  assert.equal((await check()).exitCode, 0);
  assert.equal((await check("other.example.com")).exitCode, 4);
});

test("removing a hostname asks first, and needs --yes where nobody can be asked", async () => {
  await using platform = await startScriptedPlatform({ "domains.detach": () => undefined });
  await using user = await cliUser(login(platform.url));
  const remove = ["domains", "remove", "www.example.com", "-p", "demo"];
  assert.equal((await user.berth(remove)).exitCode, 2);
  assert.equal(platform.seen.length, 0);
  assert.equal((await user.berth([...remove, "--yes"])).exitCode, 0);
  assert.equal(platform.seen[0]?.params["hostname"], "www.example.com");
});
