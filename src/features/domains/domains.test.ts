import assert from "node:assert/strict";
import { after, beforeEach, describe, test } from "node:test";
import { startDnsServer } from "../../../test/support/dns-server.ts";
import { testProject } from "../../../test/support/fixtures.ts";
import {
  sharedApi,
  testOrganization,
  testToken,
  type Called,
  type TestOrganization,
} from "../../../test/support/test-platform.ts";
import { createDnsResolver } from "../../adapters/dns-resolver/dns-resolver.ts";
import type { Result } from "../../contract/routes.ts";
import { checkDueDomains } from "./domains.ts";

type Domain = Result<"domains.attach">;

let demo: string;
let other: string;
let foreign: string;
let counter = 0;
/** A zone that no other test uses. */
const freshZone = () => `zone-${(counter += 1)}.test`;
const here = [
  { type: "A", value: "192.0.2.1" },
  { type: "AAAA", value: "2001:db8::1" },
] as const;

const server = await startDnsServer();
const api = await sharedApi({ ports: { dns: createDnsResolver({ servers: [server.address], timeoutMs: 5000 }) } });
const home = await testOrganization(api.database.db, "home", { maxProjects: 1000 });
const abroad = await testOrganization(api.database.db, "abroad", { maxProjects: 1000 });
after(() => server.close());
beforeEach(async () => {
  demo = (await testProject(api.platform, home)).slug;
  other = (await testProject(api.platform, home)).slug;
  foreign = (await testProject(api.platform, abroad)).slug;
});

const attach = (slug: string, hostname: string, token = home.member) =>
  api.call("POST", `/v1/projects/${slug}/domains`, { token, body: { hostname } });
const attachAbroad = (hostname: string) => attach(foreign, hostname, abroad.member);
const detach = (slug: string, hostname: string, token = home.member) =>
  api.call("DELETE", `/v1/projects/${slug}/domains/${hostname}`, { token });
const list = async (slug: string, token = home.member) => {
  const called = await api.call("GET", `/v1/projects/${slug}/domains`, { token });
  return called.body["domains"] as Domain[];
};
const domain = ({ body }: Called) => body as unknown as Domain;
const served = async () => {
  const rows = await api.database.db
    .selectFrom("domain")
    .select("hostname")
    .where("verified_at", "is not", null)
    .execute();
  return rows.map((row) => row.hostname);
};
const actions = async (org: TestOrganization) => {
  const rows = await api.database.db
    .selectFrom("activity")
    .select(["action", "target"])
    .where("org_id", "=", org.id)
    .orderBy("id")
    .execute();
  return rows.map((row) => `${row.action} ${row.target}`);
};
/** Makes the checks of one hostname older. */
const age = (hostname: string) =>
  api.database.db
    .updateTable("domain")
    .set({ next_check_at: new Date(0), check_begun_at: new Date(0) })
    .where("hostname", "=", hostname)
    .execute();
const recheck = async (hostname: string) => {
  await age(hostname);
  await checkDueDomains(api.platform, 100);
};

describe("attaching", () => {
  test("answers with the records to create, and serves nothing before they are there", async () => {
    const zone = freshZone();
    const called = await attach(demo, `WWW.${zone}.`);
    assert.equal(called.status, 201, called.text);
    const { hostname, dns_status, ssl_status, ssl_detail, instructions, serving } = domain(called);
    assert.deepEqual([hostname, dns_status, ssl_status, serving], [`www.${zone}`, "pending", "pending", false]);
    assert.notEqual(ssl_detail, "");
    const { type, name, value, records, txt, is_apex, alias } = instructions;
    assert.deepEqual(
      { type, name, value, txt, is_apex },
      { type: "A", name: hostname, value: "192.0.2.1", txt: null, is_apex: false },
    );
    assert.deepEqual(records, [
      { type: "A", name: hostname, value: "192.0.2.1" },
      { type: "AAAA", name: hostname, value: "2001:db8::1" },
    ]);
    assert.deepEqual([alias?.type, alias?.name], ["CNAME", hostname]);
    assert.deepEqual(await served(), []);
  });

  test("at a zone's apex no alias is offered", async () => {
    const { instructions } = domain(await attach(demo, freshZone()));
    assert.deepEqual([instructions.is_apex, instructions.alias], [true, null]);
    assert.match(instructions.note, /apex/);
  });

  test("a name whose records are there is served at once", async () => {
    const hostname = freshZone();
    server.set(hostname, ...here);
    const { dns_status, serving } = domain(await attach(demo, hostname));
    assert.deepEqual([dns_status, serving], ["ok", true]);
    assert.ok((await served()).includes(hostname));
  });

  test("an alias to the project's own name is as good, when that leads here", async () => {
    const hostname = `www.${freshZone()}`;
    server.set("demo.apps.test", ...here);
    server.set(hostname, { type: "CNAME", value: "demo.apps.test" });
    assert.equal(domain(await attach(demo, hostname)).dns_status, "ok");
  });

  test("the same name again changes nothing and answers 200, in whatever spelling", async () => {
    const hostname = `bücher.${freshZone()}`;
    const first = domain(await attach(demo, hostname));
    const again = await attach(demo, hostname.toUpperCase());
    assert.equal(again.status, 200);
    assert.equal(domain(again).id, first.id);
    assert.equal((await actions(home)).filter((text) => text === `domain.attached ${first.hostname}`).length, 1);
  });

  test("a name redirects to another of the project's names, also later, and no longer on request", async () => {
    const apex = freshZone();
    const www = `www.${apex}`;
    const send = (hostname: string, redirect_to?: string | null) =>
      api.call("POST", `/v1/projects/${demo}/domains`, { token: home.member, body: { hostname, redirect_to } });
    await attach(demo, apex);
    assert.equal(domain(await send(www, apex.toUpperCase())).redirect_to, apex);
    const again = await attach(demo, www);
    assert.deepEqual([again.status, domain(again).redirect_to], [200, apex]);
    const apart = await send(www, null);
    assert.deepEqual([apart.status, domain(apart).redirect_to], [200, null]);
    assert.equal(domain(await send(apex, www)).redirect_to, www);
    assert.deepEqual(
      (await list(demo)).map(({ redirect_to }) => redirect_to),
      [null, www],
    );
    const noted = (await actions(home)).filter((text) => text.endsWith(` ${www}`) || text.endsWith(` ${apex}`));
    assert.equal(noted.filter((text) => text.startsWith("domain.attached")).length, 4);
    await detach(demo, www);
    assert.deepEqual(
      (await list(demo)).map(({ hostname, redirect_to }) => [hostname, redirect_to]),
      [[apex, null]],
    );
  });

  test("a redirect to itself, in a circle, over two names or to a name that is not the project's is refused", async () => {
    const zone = freshZone();
    const names = [zone, `www.${zone}`, `shop.${zone}`] as const;
    const [apex, www, shop] = names;
    const strange = freshZone();
    await attachAbroad(strange);
    await attach(other, `other.${zone}`);
    await attach(demo, apex);
    const send = (hostname: string, redirect_to: string) =>
      api.call("POST", `/v1/projects/${demo}/domains`, { token: home.member, body: { hostname, redirect_to } });
    await send(www, apex);
    const cases = [
      [shop, shop, "a name can't redirect to itself"],
      [shop, www, `${www} itself redirects to ${apex}; name that one`],
      [apex, www, `${www} itself redirects to ${apex}; name that one`],
      [shop, strange, `${strange} is not a hostname of this project; attach it first`],
      [shop, `other.${zone}`, `other.${zone} is not a hostname of this project; attach it first`],
      [shop, "127.0.0.1", undefined],
    ] as const;
    for (const [hostname, to, message] of cases) {
      const { status, body } = await send(hostname, to);
      assert.deepEqual([status, body["code"]], [400, "invalid_request"], to);
      const [detail] = body["details"] as { path: string; message: string }[];
      assert.equal(detail?.path, "redirect_to");
      if (message !== undefined) assert.equal(detail.message, message);
    }
    await attach(demo, shop);
    const { body } = await send(apex, shop);
    assert.match(body["error"] as string, new RegExp(`${www} redirects to ${apex}, which therefore can't redirect`));
    assert.deepEqual(
      (await list(demo)).map(({ hostname }) => hostname),
      [shop, www, apex],
    );
  });

  test("a name that cannot be attached is refused with the reason, before the project's state is looked at", async () => {
    await api.call("DELETE", `/v1/projects/${other}`, { token: home.owner });
    for (const hostname of ["127.1", "*.example.com", "co.uk", "x.apps.test", "berth.test", "localhost", ""]) {
      for (const slug of [demo, other]) {
        const { status, body } = await attach(slug, hostname);
        assert.deepEqual([status, body["code"]], [400, "invalid_request"], hostname);
        assert.equal((body["details"] as { path: string }[])[0]?.path, "hostname");
      }
    }
    assert.equal((await attach(other, freshZone())).body["code"], "project_deleted");
  });

  test("a project has at most 100 names, also under parallel requests", async () => {
    const zone = freshZone();
    const rows = Array.from({ length: 98 }, (_, index) => `n${index}.${zone}`);
    for (const hostname of rows) assert.equal((await attach(demo, hostname)).status, 201);
    const last = await Promise.all(Array.from({ length: 6 }, (_, index) => attach(demo, `last${index}.${zone}`)));
    assert.equal(last.filter(({ status }) => status === 201).length, 2);
    assert.ok(last.every(({ status, body }) => status === 201 || body["code"] === "conflict"));
  });

  test("a wait for silent servers ends, and the name is attached", async () => {
    const hostname = freshZone();
    server.fail(hostname, "servfail");
    const called = await attach(demo, hostname);
    assert.equal(called.status, 201);
    assert.match(domain(called).dns_detail, /did not respond/);
  });
});

describe("one project has a name at a time", () => {
  test("the answer is the same whoever has it, and names nobody", async () => {
    const hostname = freshZone();
    await attach(demo, hostname);
    for (const { status, body, text } of [await attach(other, hostname), await attachAbroad(hostname)]) {
      assert.deepEqual([status, body["code"]], [409, "hostname_taken"]);
      for (const secret of [demo, home.slug, home.id]) assert.ok(!text.includes(secret));
    }
  });

  test("of many who ask at once one gets it", async () => {
    const hostname = freshZone();
    const asked = [demo, other, demo, other].map((slug) => attach(slug, hostname));
    const all = await Promise.all([...asked, attachAbroad(hostname), attachAbroad(hostname)]);
    const got = all.filter(({ status }) => status === 201);
    assert.equal(got.length, 1);
    for (const { status } of all) assert.ok([200, 201, 409].includes(status));
  });

  test("another organization's name moves to whoever proves control of its zone, and only then", async () => {
    const hostname = freshZone();
    server.set(hostname, ...here);
    await attach(demo, hostname);
    const refused = await attachAbroad(hostname);
    const [, name = "", value = ""] = /TXT record (\S+) with the value (\S+)/.exec(String(refused.body["hint"])) ?? [];
    assert.equal(name, `_berth.${hostname}`);
    server.set(name, { type: "TXT", value: "berth-proof=guessed" });
    assert.equal((await attachAbroad(hostname)).status, 409);
    server.set(name, { type: "TXT", value });
    const moved = await attachAbroad(hostname);
    assert.equal(moved.status, 201, moved.text);
    assert.deepEqual([domain(moved).dns_status, domain(moved).serving], ["ok", true]);
    assert.deepEqual(await list(demo), []);
    assert.ok((await actions(home)).includes(`domain.moved_away ${hostname}`));
    assert.ok((await actions(abroad)).includes(`domain.attached ${hostname}`));
  });

  test("a name that another organization has asked for is not served by its address records alone, but stays served if it was", async () => {
    const [contested, alone] = [freshZone(), freshZone()];
    for (const hostname of [contested, alone]) await attach(demo, hostname);
    assert.equal((await attachAbroad(contested)).status, 409);
    for (const hostname of [contested, alone]) {
      server.set(hostname, ...here);
      await recheck(hostname);
    }
    assert.ok(!(await served()).includes(contested));
    assert.ok((await served()).includes(alone));
    assert.equal((await attachAbroad(alone)).status, 409);
    await recheck(alone);
    assert.ok((await served()).includes(alone), "a served name stays served");
    const [row] = (await list(demo)).filter(({ hostname }) => hostname === contested);
    server.set(`_berth.${contested}`, { type: "TXT", value: row?.instructions.txt?.value ?? "" });
    await recheck(contested);
    assert.ok((await served()).includes(contested), "its own proof decides");
    const late = freshZone();
    await attach(demo, late);
    await attachAbroad(late);
    await api.database.db
      .updateTable("domain_claim")
      .set({ asked_at: new Date(Date.now() - 31 * 86_400_000) })
      .where("hostname", "=", late)
      .execute();
    server.set(late, ...here);
    await recheck(late);
    assert.ok((await served()).includes(late), "a request counts for 30 days");
  });

  test("a proof is an organization's own: seen by another, it moves nothing", async () => {
    const hostname = freshZone();
    await attach(demo, hostname);
    const third = await testOrganization(api.database.db, `third-${counter}`);
    const { slug } = await testProject(api.platform, third);
    const value = /value (\S+)/.exec(String((await attachAbroad(hostname)).body["hint"]))?.[1] as string;
    server.set(`_berth.${hostname}`, { type: "TXT", value });
    assert.equal((await attach(slug, hostname, third.member)).status, 409);
  });

  test("inside an organization a proof moves nothing: a name is detached first", async () => {
    const hostname = freshZone();
    await attach(demo, hostname);
    const { proof } = await api.database.db
      .selectFrom("domain_claim")
      .select("proof")
      .where("hostname", "=", hostname)
      .executeTakeFirstOrThrow();
    server.set(`_berth.${hostname}`, { type: "TXT", value: proof });
    assert.equal((await attach(other, hostname)).status, 409);
    assert.equal((await detach(demo, hostname)).status, 204);
    assert.equal((await attach(other, hostname)).status, 201);
  });
});

describe("records that still lead here do not give a name away", () => {
  test("what another organization had needs a TXT record, and is served when it is there", async () => {
    const hostname = freshZone();
    server.set(hostname, ...here);
    await attach(demo, hostname);
    await detach(demo, hostname);
    const { dns_status, serving, instructions } = domain(await attachAbroad(hostname));
    assert.deepEqual([dns_status, serving], ["pending", false]);
    const { txt } = instructions;
    assert.equal(txt?.name, `_berth.${hostname}`);
    assert.deepEqual(instructions.records.at(-1), txt);
    server.set(txt?.name ?? "", { type: "TXT", value: txt?.value ?? "" });
    await recheck(hostname);
    assert.deepEqual(
      (await list(foreign, abroad.member)).map((row) => [row.dns_status, row.serving, row.instructions.txt]),
      [["ok", true, null]],
    );
    server.set(txt?.name ?? "");
    await recheck(hostname);
    assert.ok((await served()).includes(hostname), "a proof once seen is enough");
  });

  test("a name beside one that another organization serves needs it too, because a wildcard record may lead here", async () => {
    const zone = freshZone();
    for (const hostname of [`www.${zone}`, `login.${zone}`]) server.set(hostname, ...here);
    await attach(demo, `www.${zone}`);
    const beside = domain(await attachAbroad(`login.${zone}`));
    assert.deepEqual([beside.serving, beside.instructions.txt?.name], [false, `_berth.login.${zone}`]);
    assert.equal(domain(await attach(demo, `shop.${zone}`)).instructions.txt, null, "its own neighbours do not count");
    await recheck(`www.${zone}`);
    assert.ok((await served()).includes(`www.${zone}`), "the first stays served");
  });

  test("a zone in which the platform itself has names needs it as well", async () => {
    const { controlHost } = api.platform.domains;
    const zone = freshZone();
    Object.assign(api.platform.domains, { controlHost: `berth.${zone}` });
    try {
      assert.equal((await attach(demo, `berth.${zone}`)).status, 400);
      for (const hostname of [zone, `www.${zone}`])
        assert.equal(domain(await attach(demo, hostname)).instructions.txt?.name, `_berth.${hostname}`);
    } finally {
      Object.assign(api.platform.domains, { controlHost });
    }
  });
});

describe("names are looked up again and again", () => {
  test("a list looks each name up at most once a minute", async () => {
    const hostname = freshZone();
    await attach(demo, hostname);
    server.set(hostname, ...here);
    const questions = server.asked.length;
    assert.equal((await list(demo))[0]?.dns_status, "pending");
    assert.equal(server.asked.length, questions);
    await age(hostname);
    assert.equal((await list(demo))[0]?.dns_status, "ok");
  });

  test("a served name that is lost says so, is served through the grace time, and then no more", async () => {
    const hostname = freshZone();
    server.set(hostname, ...here);
    await attach(demo, hostname);
    server.set(hostname, { type: "A", value: "203.0.113.5" });
    await recheck(hostname);
    const [lost] = await list(demo);
    assert.deepEqual([lost?.dns_status, lost?.serving], ["mismatch", true]);
    assert.notEqual(lost?.serving_until, null);
    await api.database.db
      .updateTable("domain")
      .set({ lost_at: new Date(Date.now() - 3_700_000) })
      .where("hostname", "=", hostname)
      .execute();
    await recheck(hostname);
    assert.ok(!(await served()).includes(hostname));
    server.set(hostname, ...here);
    await recheck(hostname);
    assert.ok((await served()).includes(hostname));
    const told = (await actions(home)).filter((text) => text.endsWith(` ${hostname}`));
    assert.deepEqual(
      told.map((text) => text.split(" ")[0]),
      ["domain.attached", "domain.served", "domain.lost", "domain.not_served", "domain.served"],
    );
  });

  test("servers that do not answer take nobody offline", async () => {
    const hostname = freshZone();
    server.set(hostname, ...here);
    await attach(demo, hostname);
    server.fail(hostname, "servfail");
    await recheck(hostname);
    const [row] = await list(demo);
    assert.deepEqual([row?.dns_status, row?.serving, row?.serving_until], ["ok", true, null]);
  });

  test("several control planes share the work: a due name is looked up by one", async () => {
    const zone = freshZone();
    for (const part of ["a", "b", "c", "d"]) await attach(demo, `${part}.${zone}`);
    await api.database.db
      .updateTable("domain")
      .set({ next_check_at: new Date("2100-01-01") })
      .execute();
    await api.database.db
      .updateTable("domain")
      .set({ next_check_at: new Date(0) })
      .where("zone", "=", zone)
      .execute();
    const counts = await Promise.all([1, 2, 3].map(() => checkDueDomains(api.platform, 100)));
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      4,
    );
  });
});

describe("detaching", () => {
  test("ends the serving at once, in any spelling of the name", async () => {
    const hostname = freshZone();
    server.set(hostname, ...here);
    await attach(demo, hostname);
    assert.equal((await detach(demo, `${hostname.toUpperCase()}.`)).status, 204);
    assert.ok(!(await served()).includes(hostname));
    assert.equal((await detach(demo, hostname)).status, 404);
  });

  test("another project's name is as missing as one that never was", async () => {
    const hostname = freshZone();
    await attach(demo, hostname);
    const theirs = await detach(foreign, hostname, abroad.member);
    const missing = await detach(foreign, "never.example.com", abroad.member);
    assert.deepEqual([theirs.status, theirs.text], [missing.status, missing.text]);
    assert.equal((await detach(other, hostname)).status, 404);
  });

  test("a token in approval mode may not do it by itself", async () => {
    const hostname = freshZone();
    await attach(demo, hostname);
    const { text } = await testToken(api.database.db, home.id, { approval_mode: true });
    assert.equal((await detach(demo, hostname, text)).status, 403);
  });
});
