// Drawn with other operation files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
import assert from "node:assert/strict";
import { X509Certificate, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, request, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import acme from "acme-client";
import { sql } from "kysely";
import { createRfc2136DnsProvider } from "../src/adapters/dns-provider-rfc2136/rfc2136-dns-provider.ts";
import { createDnsResolver } from "../src/adapters/dns-resolver/dns-resolver.ts";
import { createAcmeIssuer } from "../src/adapters/issuer-acme/acme-issuer.ts";
import { deleteChallenge, insertChallenge, openAccount } from "../src/features/certificates/certificates.ts";
import { checkDueDomains } from "../src/features/domains/domains.ts";
import { troubledDomains } from "../src/features/status/evidence.ts";
import { answerChallenge, challengePrefix } from "../src/http/acme-challenges.ts";
import { silentLog } from "../src/kit/log.ts";
import { formatIdentity, ownIdentity } from "../src/kit/processes.ts";
import type { Challenge } from "../src/ports/certificate-issuer.ts";
import type { Edge } from "../src/ports/edge.ts";
import { certificatesTask, followSuggestions } from "../src/reconcile/certificates/certificates-task.ts";
import { createDriver } from "../src/reconcile/driver.ts";
import type { Task, Platform } from "../src/reconcile/platform.ts";
import { edgeTask } from "../src/reconcile/edge/edge-task.ts";
import { startDnsServer, type DnsRecord } from "./support/dns-server.ts";
import { createTestEdge, withoutHaproxy } from "./support/edges.ts";
import { eventually } from "./support/eventually.ts";
import { readyReplica, testBuild, testDeployment, testProject } from "./support/fixtures.ts";
import { freePort } from "./support/free-port.ts";
import { nsupdateBin, startKnot, withoutKnot, type Knot } from "./support/knot.ts";
import { startLimitedAuthority } from "./support/limited-authority.ts";
import { startPebble, withoutPebble, type Pebble } from "./support/pebble.ts";
import { platformBeside } from "./support/platform-double.ts";
import { testApi, testOrganization, type TestApi, type TestOrganization } from "./support/test-platform.ts";
import { startVisits, visitOverTls } from "./support/visits.ts";

describe("certificates", { skip: withoutPebble || withoutKnot || withoutHaproxy }, () => {
  let dns: Knot;
  let dnsServer: string;
  let api: TestApi;
  let org: TestOrganization;
  let edge: Edge;
  let app: Server;
  let pebble: Pebble;
  let platform: Platform;
  let tasks: { readonly edge: Task; readonly certificates: Task };
  let folder: string;
  let slug: string;
  let ports: { readonly plain: number; readonly tls: number };
  const here: DnsRecord = { type: "A", value: "127.0.0.1" };

  before(async () => {
    dns = await startKnot(".");
    dnsServer = `127.0.0.1:${dns.port}`;
    const mount = {
      prefix: challengePrefix,
      anyHost: true,
      handle: (incoming: Parameters<typeof answerChallenge>[1], response: Parameters<typeof answerChallenge>[2]) =>
        answerChallenge(api.platform.db, incoming, response),
    } as const;
    const resolver = createDnsResolver({ servers: [dnsServer], timeoutMs: 5000 });
    api = await testApi({ ports: { dns: resolver }, http: { mounts: [mount] } });
    org = await testOrganization(api.database.db, "home");
    folder = await mkdtemp(join(tmpdir(), "berth-certificates-"));
    edge = createTestEdge({ listenPort: 0, listenTlsPort: 0, stateDir: folder });
    app = createServer((_incoming, response) => response.end("the shop"));
    await new Promise<void>((done) => app.listen(0, "127.0.0.1", done));
    await deployedProject();
    await edge.apply({ version: 0, routes: [], challenge: null });
    const portOf = (listen: string | null) => Number(listen?.split(":").at(-1));
    const status = await edge.observe();
    ports = { plain: portOf(status.listen), tls: portOf(status.listen_tls) };
    pebble = await startPebble({ dnsServer, httpPort: ports.plain });
    platform = platformWith(pebble);
    tasks = { edge: edgeTask(platform), certificates: certificatesTask(platform, () => {}) };
  });
  after(async () => {
    await edge.stop(0);
    await api.close();
    await pebble.stop();
    await dns.close();
    app.close();
    await rm(folder, { recursive: true, force: true });
  });

  function platformWith(
    { directory, caFile }: Pick<Pebble, "directory" | "caFile">,
    externalAccount: { kid: string; hmacKey: string } | null = null,
  ): Platform {
    const certificateIssuer = createAcmeIssuer({
      directory,
      caFile,
      email: "operator@example.com",
      externalAccount,
    });
    const certificates = {
      ...{
        directory,
        weeklyFirsts: 40,
        weeklyPreviews: 20,
        httpPort: ports.plain,
        probe: true,
        hsts: false,
        own: () => [],
      },
      ...{ control: { host: "127.0.0.1", port: api.port }, controlHost: null, appsDomain: null },
    };
    const domains = { ...api.platform.domains, publicAddresses: ["127.0.0.1"] };
    const owner = formatIdentity(ownIdentity());
    return platformBeside(api, { owner, ports: { edge, certificateIssuer }, domains, certificates });
  }

  /** Creates a project whose only replica is the application above. */
  async function deployedProject(): Promise<void> {
    const project = await testProject(api.platform, org);
    slug = project.slug;
    const owner = { org_id: org.id, project_id: project.id };
    const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
    const id = await testDeployment(api.platform, owner, { build_id, number: 1, status: "active" });
    const address = { host: "127.0.0.1", port: (app.address() as AddressInfo).port };
    await readyReplica(api.platform.db, { org_id: org.id, deployment_id: id, address });
  }

  /** Attaches a name with these records, and runs every task once. */
  async function attach(hostname: string, ...records: readonly DnsRecord[]) {
    if (records.length > 0) await dns.set(hostname, ...records);
    await api.call("POST", `/v1/projects/${slug}/domains`, { token: org.owner, body: { hostname } });
    return proceed(hostname);
  }

  async function proceed(hostname: string, order: (task: Task) => Promise<void> = orderBesideEdge) {
    const { db } = platform;
    await db
      .updateTable("domain")
      .set({ next_check_at: new Date(0) })
      .execute();
    // Only this name is due, so that names of other tests cause no orders.
    await sql`update certificate set next_attempt_at = case when hostname = ${hostname} then now() else '2100-01-01' end`.execute(
      db,
    );
    await checkDueDomains(platform, 100);
    await run(tasks.edge);
    await order(tasks.certificates);
    await run(tasks.edge);
    return shown(hostname);
  }

  /** Runs the edge's task beside the order, because an order ends only when the edge has confirmed its certificate. */
  async function orderBesideEdge(task: Task): Promise<void> {
    const edges = createDriver({ tasks: [tasks.edge], wakeups: platform.wakeups, log: silentLog });
    await edges.start();
    await run(task).finally(() => edges.stop());
  }

  async function run(task: Task): Promise<void> {
    await task.run(new AbortController().signal);
    await task.settle?.();
  }

  interface Shown {
    readonly hostname: string;
    readonly ssl_status: string;
    readonly ssl_detail: string;
    readonly ssl_next_attempt_at: string | null;
    readonly ssl_steps: readonly { readonly at: string; readonly status: string; readonly detail: string }[];
  }

  async function shown(hostname: string): Promise<Shown> {
    const { body } = await api.call("GET", `/v1/projects/${slug}/domains`, { token: org.owner });
    return (body["domains"] as Shown[]).find((each) => each.hostname === hostname) as Shown;
  }

  /** Requests the name over HTTPS as a client that trusts only the test authority. */
  async function visit(servername: string, authority = pebble): Promise<string> {
    return (await visitOverTls({ port: ports.tls, servername, ca: await authority.roots() })).body;
  }

  /** Requests the name over plain HTTP. */
  async function visitPlainly(hostname: string): Promise<{ status: number | undefined; body: string }> {
    const asking = request({ host: "127.0.0.1", port: ports.plain, agent: false, headers: { host: hostname } });
    const [response] = (await once(asking.end(), "response")) as [IncomingMessage];
    let body = "";
    for await (const chunk of response) body += String(chunk);
    return { status: response.statusCode, body };
  }

  /** Like `proceed`, but no edge loads the issued certificate before `beforeLoading` has resolved. */
  function proceedWithPause(hostname: string, beforeLoading: () => Promise<void>): Promise<Shown> {
    return proceed(hostname, async (task) => {
      // The edge's task reports again only below. Until then the row keeps the edge alive.
      await sql`update edge set seen_at = now() + interval '1 hour'`.execute(platform.db);
      const done = run(task);
      const isLoading = async () => (await shown(hostname)).ssl_detail.includes("the edges are loading it");
      await eventually(isLoading, "the certificate was issued");
      await beforeLoading();
      await run(tasks.edge);
      await done;
    });
  }

  test("a name's status stays issuing until the edges have loaded its first certificate, and stays active during a renewal", async () => {
    const hostname = "loading.example.com";
    const statusWhileLoading = async () => {
      let status = "";
      await proceedWithPause(hostname, async () => void (status = (await shown(hostname)).ssl_status));
      return [status, (await shown(hostname)).ssl_status];
    };
    await attach(hostname);
    await dns.set(hostname, here);
    assert.deepEqual(await statusWhileLoading(), ["issuing", "active"]);
    assert.deepEqual(await statusWhileLoading(), ["active", "active"]);
  });

  test("the status names a certificate that no edge has confirmed", async (t) => {
    const hostname = "early.example.com";
    const { edgeConfirmMs } = platform.settings;
    t.after(() => Object.assign(platform.settings, { edgeConfirmMs }));
    Object.assign(platform.settings, { edgeConfirmMs: 100 });
    assert.equal((await attach(hostname)).ssl_status, "pending");
    await dns.set(hostname, here);
    const { ssl_status, ssl_detail } = await proceed(hostname, async (task) => {
      await platform.db.deleteFrom("edge").execute();
      await run(task);
    });
    assert.equal(ssl_status, "active", ssl_detail);
    assert.match(ssl_detail, /Not every edge has confirmed it yet\.$/);
  });

  test("a name whose records point here is served over HTTPS with a valid certificate", async () => {
    const { ssl_status, ssl_detail, ssl_next_attempt_at } = await attach("shop.example.com", here);
    assert.equal(ssl_status, "active", ssl_detail);
    assert.doesNotMatch(ssl_detail, /confirmed/);
    assert.equal(await visit("shop.example.com"), "the shop");
    assert.equal((await visitPlainly("shop.example.com")).status, 308);
    const days = (Date.parse(ssl_next_attempt_at ?? "") - Date.now()) / 86_400_000;
    assert.ok(Math.abs(days - 60) < 1, `the renewal is due after ${days} days`);
  });

  test("private keys of certificates and of the account are sealed in the database", async () => {
    const issued = platform.db.selectFrom("certificate").select("sealed_key").where("sealed_key", "is not", null);
    const keys = [
      ...(await issued.execute()),
      ...(await platform.db.selectFrom("acme_account").select("sealed_key").execute()),
    ];
    assert.ok(keys.length >= 2);
    for (const { sealed_key } of keys) assert.doesNotMatch(String(sealed_key), /PRIVATE KEY/);
  });

  test("all applications' names get one wildcard certificate, proven by a signed DNS update of their zone", async (t) => {
    const knot = await startKnot("example.org");
    t.after(() => knot.close());
    const authority = await startPebble({ dnsServer: `127.0.0.1:${knot.port}`, httpPort: ports.plain });
    t.after(() => authority.stop());
    const order = async (keyFile: string) => {
      const base = platformWith(authority);
      const at = { host: "127.0.0.1", port: knot.port, nsupdateBin, spreadMs: 0 };
      const dnsProvider = createRfc2136DnsProvider({ ...at, keyFile });
      const certificates = { ...base.certificates, directory: authority.directory, appsDomain: "apps.example.org" };
      await sql`update certificate set next_attempt_at = case when challenge = 'dns-01' then now() else '2100-01-01' end`.execute(
        platform.db,
      );
      await orderBesideEdge(
        certificatesTask({ ...base, certificates, ports: { ...base.ports, dnsProvider } }, () => {}),
      );
      platformWith(pebble);
      const query = platform.db.selectFrom("certificate").select(["status", "detail"]);
      return query.where("hostname", "=", "*.apps.example.org").executeTakeFirstOrThrow();
    };
    const refused = await order(knot.wrongKeyFile);
    assert.equal(refused.status, "failed");
    assert.match(
      refused.detail,
      /^Berth could not publish the proof .*: the DNS server 127\.0\.0\.1, port \d+, did not accept/,
    );
    const { status, detail } = await order(knot.keyFile);
    assert.equal(status, "active", detail);
    assert.match(await visit("anything.apps.example.org", authority), /anything\.apps\.example\.org|not|Not/);
    assert.deepEqual(await knot.texts("_acme-challenge.apps.example.org"), []);
  });

  const wrong: readonly (readonly [what: string, records: readonly DnsRecord[], detail: RegExp])[] = [
    ["no record", [], /no A or AAAA record/],
    ["an address elsewhere", [{ type: "A", value: "203.0.113.9" }], /points to 203\.0\.113\.9, not here/],
    [
      "an AAAA record elsewhere",
      [here, { type: "AAAA", value: "2001:db8::9" }],
      /AAAA record points to 2001:db8::9.*prefer IPv6/,
    ],
    [
      "an alias elsewhere",
      [{ type: "CNAME", value: "else.example.net" }],
      /alias \(CNAME\) of else\.example\.net, which points to 203\.0\.113\.9/,
    ],
    [
      "a CAA record that forbids issuance",
      [here, { type: "CAA", value: ";" }],
      /CAA record of the name allows only nobody/,
    ],
  ];
  /** Attaches a name while the certificates task uses other settings or another authority. */
  async function proceedWith(
    changed: Partial<Platform["certificates"]>,
    hostname: string,
    authority: Pick<Pebble, "directory" | "caFile"> = pebble,
  ) {
    const other = platformWith(authority);
    const certificates = certificatesTask({ ...other, certificates: { ...other.certificates, ...changed } }, () => {});
    const usual = tasks;
    tasks = { ...usual, certificates };
    const now = await attach(hostname, here).finally(() => (tasks = usual));
    // Creating a platform changes the authority for the whole process, so restore it.
    platformWith(pebble);
    return now;
  }
  /** Minutes from the latest step to the next attempt. */
  const inMinutes = ({ ssl_next_attempt_at, ssl_steps }: Shown) =>
    Math.round((Date.parse(ssl_next_attempt_at ?? "") - Date.parse(ssl_steps.at(-1)?.at ?? "")) / 60_000);

  test("no certificate is ordered for a name whose port is closed", async () => {
    const [before, httpPort] = [pebble.orders(), await freePort()];
    const { ssl_status, ssl_detail } = await proceedWith({ httpPort }, "closed.example.com");
    assert.equal(ssl_status, "pending");
    assert.match(ssl_detail, new RegExp(`port ${httpPort} of 127.0.0.1 can't be reached \\(ECONNREFUSED\\)`));
    assert.equal(pebble.orders(), before);
  });

  test("no certificate is ordered for a name at which another server answers", async () => {
    const [before, httpPort] = [pebble.orders(), (app.address() as AddressInfo).port];
    const { ssl_status, ssl_detail } = await proceedWith({ httpPort }, "other.example.com");
    assert.equal(ssl_status, "pending");
    assert.match(ssl_detail, /another server answers for the name at 127\.0\.0\.1, port \d+ \(status 200\)/);
    assert.equal(pebble.orders(), before);
  });

  test("an order is retried within minutes when the authority does not answer", async () => {
    const gone = { directory: `https://localhost:${await freePort()}/dir`, caFile: pebble.caFile };
    const now = await proceedWith({ directory: gone.directory }, "down.example.com", gone);
    assert.equal(now.ssl_status, "failed");
    assert.match(now.ssl_detail, /^The certificate authority does not answer\./);
    assert.equal(inMinutes(now), 1);
  });

  test("after a rate limit, the next attempt waits as long as the authority requests", async () => {
    const limited = await startLimitedAuthority(7200);
    const now = await proceedWith({ directory: limited.directory }, "limit.example.com", limited);
    await limited.close();
    assert.equal(now.ssl_status, "failed");
    assert.match(now.ssl_detail, /rate limit is reached\. too many certificates already issued\.$/);
    assert.equal(inMinutes(now), 120);
  });

  test("a failed challenge is reported with the authority's message, and the order is retried after 15 minutes", async () => {
    const elsewhere = await startDnsServer();
    elsewhere.set("refused.example.com", { type: "A", value: "127.0.0.9" });
    const other = await startPebble({ dnsServer: elsewhere.address, httpPort: await freePort() });
    const now = await proceedWith({ directory: other.directory }, "refused.example.com", other);
    await other.stop();
    await elsewhere.close();
    assert.equal(now.ssl_status, "failed");
    assert.match(now.ssl_detail, /could not verify the name\. .*refused/);
    assert.equal(inMinutes(now), 15);
    assert.match(now.ssl_steps[0]?.detail ?? "", /is ordering/);
    assert.deepEqual([now.ssl_steps.at(-1)?.status, now.ssl_steps.at(-1)?.detail], ["failed", now.ssl_detail]);
  });

  test("an authority with external account binding refuses an account without the key and issues to one with it", async () => {
    const hmacKey = randomBytes(32).toString("base64url");
    const binding = await startPebble({
      dnsServer,
      httpPort: ports.plain,
      externalAccounts: { customer: hmacKey },
    });
    const account = { key_pem: (await acme.crypto.createPrivateEcdsaKey()).toString(), url: null };
    const order = async (given: { kid: string; hmacKey: string } | null) => {
      const issuer = platformWith(binding, given).ports.certificateIssuer;
      const challenges = {
        publish: ({ token, hostname, text: answer }: Challenge) =>
          insertChallenge(platform.db, { token, hostname, answer }),
        withdraw: ({ token }: Challenge) => deleteChallenge(platform.db, token),
      };
      return issuer?.order({ names: ["bound.example.com"], challenge: "http-01", account }, challenges);
    };
    await dns.set("bound.example.com", here);
    const refused = await order(null);
    assert.equal(refused?.outcome, "refused");
    const issued = await order({ kid: "customer", hmacKey });
    assert.equal(issued?.outcome, "issued", JSON.stringify(issued));
    platformWith(pebble);
    await binding.stop();
  });

  test("a revoked account is replaced with a new one at the next attempt", async () => {
    const account = await openAccount(platform, pebble.directory, () => Promise.reject(new Error("there is one")));
    const { key_pem: accountKey, url: accountUrl } = account;
    const client = new acme.Client({ directoryUrl: pebble.directory, accountKey, accountUrl: accountUrl ?? "" });
    await client.updateAccount({ status: "deactivated" });
    const refused = await attach("account.example.com", here);
    assert.equal(refused.ssl_status, "failed");
    assert.match(refused.ssl_detail, /no longer accepts the platform's account/);
    assert.equal((await proceed("account.example.com")).ssl_status, "active");
  });

  test("a renewal replaces the certificate without a failed request on kept and new connections", async () => {
    const hostname = "renew.example.com";
    await attach(hostname, here);
    const first = await storedSerial(hostname);
    const visits = startVisits({ port: ports.tls, servername: hostname, ca: await pebble.roots() }, "the shop");
    try {
      await visits.passed(20, first);
      // By now the new certificate is issued; the edge still has the old one.
      const renewed = proceedWithPause(hostname, () => visits.passed(20, first));
      assert.equal((await renewed).ssl_status, "active");
      const second = await storedSerial(hostname);
      assert.notEqual(second, first);
      await visits.passed(20, second);
    } finally {
      await visits.stop();
    }
    assert.deepEqual(visits.failures, []);
    assert.deepEqual(visits.keptSerials(), [first], "the renewal closed a kept connection");
  });

  test("a failed renewal keeps the old certificate", async () => {
    const hostname = "kept.example.com";
    await attach(hostname, here);
    const first = await storedSerial(hostname);
    await dns.set(hostname, { type: "A", value: "203.0.113.9" });
    const { ssl_status, ssl_detail } = await proceed(hostname);
    assert.equal(ssl_status, "active");
    assert.match(ssl_detail, /^Valid until .*, but not renewed yet\. No certificate is ordered: /);
    const { body, serial } = await visitOverTls({ port: ports.tls, servername: hostname, ca: await pebble.roots() });
    assert.deepEqual([body, serial], ["the shop", first]);
  });

  async function storedSerial(hostname: string): Promise<string> {
    const row = platform.db.selectFrom("certificate").select("chain_pem").where("hostname", "=", hostname);
    return new X509Certificate((await row.executeTakeFirstOrThrow()).chain_pem ?? "").serialNumber;
  }

  test("the steps of an order are stored with their times, and each step appears in the stream of changes", async () => {
    const { ssl_status, ssl_detail, ssl_steps: taken } = await attach("steps.example.com", here);
    assert.equal(ssl_status, "active", ssl_detail);
    const steps = [
      /is ordering/,
      /is verifying the name/,
      /is fetching the certificate/,
      /edges are loading it/,
      /^Valid until /,
    ];
    assert.equal(taken.length, steps.length, JSON.stringify(taken));
    for (const [index, step] of steps.entries()) assert.match(taken[index]?.detail ?? "", step);
    assert.deepEqual(taken.map(({ status }) => status).join(" "), "issuing issuing issuing issuing active");
    assert.deepEqual(
      taken.map(({ at }) => at),
      taken.map(({ at }) => at).toSorted(),
    );
    const { db } = platform;
    const changes = () =>
      sql<{ seen: string }>`select xmin::text as seen from domain where hostname = 'steps.example.com'`.execute(db);
    const before = (await changes()).rows[0]?.seen;
    await sql`update certificate set detail = 'another step' where hostname = 'steps.example.com'`.execute(db);
    assert.notEqual((await changes()).rows[0]?.seen, before);
  });

  test("a renewal moves to an earlier time that the authority suggests, but not to a later one", async () => {
    await attach("early.example.com", here);
    const row = platform.db.selectFrom("certificate").select(["chain_pem", "not_after", "detail", "next_attempt_at"]);
    const stored = () => row.where("hostname", "=", "early.example.com").executeTakeFirstOrThrow();
    const { chain_pem, not_after, next_attempt_at: planned } = await stored();
    const inDays = (days: number) => new Date(Date.now() + days * 86_400_000);
    const suggest = async (start: Date, end: Date) => {
      const authority = await startLimitedAuthority(1, { start, end });
      await followSuggestions(platformWith(authority), new AbortController().signal);
      await authority.close();
      platformWith(pebble);
      return authority.askedFor;
    };
    const asked = await suggest(inDays(65), inDays(66));
    const { raw, serialNumber } = new X509Certificate(chain_pem ?? "");
    const [key = "", serial = ""] = (asked[0] ?? "").split(".");
    const keyHex = Buffer.from(key, "base64url").toString("hex");
    assert.ok(
      keyHex.length >= 40 && raw.includes(Buffer.from(`80${(keyHex.length / 2).toString(16)}${keyHex}`, "hex")),
    );
    assert.equal(Buffer.from(serial, "base64url").toString("hex").replace(/^00/, ""), serialNumber.toLowerCase());
    assert.deepEqual((await stored()).next_attempt_at, planned);
    const [from, to] = [inDays(3), inDays(4)];
    await suggest(from, to);
    const { next_attempt_at, detail } = await stored();
    assert.ok(from <= new Date(next_attempt_at) && new Date(next_attempt_at) <= to, next_attempt_at);
    assert.match(detail, new RegExp(`^Valid until ${new Date(not_after ?? "").toISOString()}; Berth renews it from `));
  });

  test("an expired certificate is never served: the name is served over HTTP, and the status explains it", async () => {
    await attach("ended.example.com", here);
    await platform.db
      .updateTable("certificate")
      .set({ not_after: new Date(1e12) })
      .where("hostname", "=", "ended.example.com")
      .execute();
    await dns.set("ended.example.com", { type: "A", value: "203.0.113.9" });
    const { ssl_status, ssl_detail } = await proceed("ended.example.com");
    assert.equal(ssl_status, "failed");
    assert.match(ssl_detail, /^The certificate expired at 2001-09-09T.*served over HTTP\. No certificate is ordered: /);
    await assert.rejects(visit("ended.example.com"), /unrecognized name/);
    assert.deepEqual(await visitPlainly("ended.example.com"), { status: 200, body: "the shop" });
  });

  test("a certificate counts as troubled from 14 days before its expiry", async () => {
    await attach("late.example.com", here);
    const kindWith = async (days: number) => {
      const [not_before, not_after] = [days - 90, days].map((each) => new Date(Date.now() + each * 86_400_000));
      const late = platform.db.updateTable("certificate").set({ not_before, not_after });
      await late.where("hostname", "=", "late.example.com").execute();
      return (await troubledDomains(platform.db)).find(({ subject }) => subject === "late.example.com")?.kind;
    };
    assert.deepEqual([await kindWith(15), await kindWith(13)], [undefined, "ending"]);
  });

  test("only one process at a time orders a certificate for a name", async () => {
    await dns.set("once.example.com", here);
    await api.call("POST", `/v1/projects/${slug}/domains`, {
      token: org.owner,
      body: { hostname: "once.example.com" },
    });
    await platform.db
      .updateTable("domain")
      .set({ next_check_at: new Date(0) })
      .execute();
    await checkDueDomains(platform, 100);
    const before = pebble.orders();
    const others = Array.from({ length: 3 }, (_, index) =>
      certificatesTask({ ...platform, owner: `other-${index}` }, () => {}),
    );
    await Promise.all([tasks.certificates, ...others].map((task) => orderBesideEdge(task)));
    assert.equal(pebble.orders() - before, 1);
  });

  for (const [index, [what, records, detail]] of wrong.entries()) {
    test(`with ${what} nothing is ordered, and the status gives the reason and the time of the next check`, async () => {
      await dns.set("else.example.net", { type: "A", value: "203.0.113.9" });
      const before = pebble.orders();
      const now = await attach(`wrong-${index}.example.com`, ...records);
      assert.equal(now.ssl_status, "pending");
      assert.match(now.ssl_detail, detail);
      assert.ok(Date.parse(now.ssl_next_attempt_at ?? "") - Date.now() <= 15_000);
      assert.equal(pebble.orders(), before);
    });
  }
});
