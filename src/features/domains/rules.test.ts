import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { DnsAnswer } from "../../ports/dns.ts";
import { presentDomain } from "./present-domain.ts";
import { evaluateDns, nextCheckMs, type KnownDomain } from "./rules.ts";

const now = Date.parse("2026-01-02T00:00:00.000Z");
const at = (hoursAgo: number) => new Date(now - hoursAgo * 3_600_000).toISOString();
const own = ["192.0.2.1", "2001:db8::1"];
const none: DnsAnswer = { outcome: "none" };
const found = (...values: string[]): DnsAnswer => ({ outcome: "found", values });
const fresh: KnownDomain = {
  hostname: "app.example.com",
  dns_status: "pending",
  created_at: at(0),
  txt_seen_at: null,
  verified_at: null,
  lost_at: null,
  proof: "berth-proof=1",
  needs_txt: false,
};
const outcome = (domain: Partial<KnownDomain>, addresses: DnsAnswer, texts: DnsAnswer = none) => {
  const { dns_status, verdict } = evaluateDns({ ...fresh, ...domain }, { addresses, texts }, own);
  return `${dns_status} ${verdict}`;
};

describe("what a look at the DNS means", () => {
  const served = { verified_at: at(1), dns_status: "ok" } as const;
  const cases: readonly (readonly [string, string, string])[] = [
    ["our address", outcome({}, found("192.0.2.1")), "ok serve"],
    ["all our addresses, however they are written", outcome({}, found("192.0.2.1", "2001:0db8:0:0::1")), "ok serve"],
    ["no address", outcome({}, none), "pending withhold"],
    ["another address", outcome({}, found("203.0.113.9")), "mismatch withhold"],
    ["ours and another", outcome({}, found("192.0.2.1", "203.0.113.9")), "mismatch serve"],
    ["our IPv4 and another IPv6 address", outcome({}, found("192.0.2.1", "2001:db8::2")), "mismatch serve"],
    ["ours without the proof that is needed", outcome({ needs_txt: true }, found("192.0.2.1")), "pending withhold"],
    [
      "ours with another's proof",
      outcome({ needs_txt: true }, found("192.0.2.1"), found("berth-proof=2")),
      "pending withhold",
    ],
    [
      "ours with the proof",
      outcome({ needs_txt: true }, found("192.0.2.1"), found("v=spf1", "berth-proof=1")),
      "ok serve",
    ],
    ["ours with a proof seen before", outcome({ needs_txt: true, txt_seen_at: at(1) }, found("192.0.2.1")), "ok serve"],
    ["the proof and a proxy's address", outcome({}, found("104.16.0.1"), found("berth-proof=1")), "mismatch serve"],
    ["an old proof and a proxy's address", outcome({ txt_seen_at: at(1) }, found("104.16.0.1")), "mismatch withhold"],
    ["a served name without addresses", outcome(served, none), "mismatch lost"],
    ["a served name elsewhere", outcome(served, found("203.0.113.9")), "mismatch lost"],
    ["a served name and no answer", outcome(served, { outcome: "unavailable" }), "ok keep"],
    ["a new name and no answer", outcome({}, { outcome: "unavailable" }), "pending keep"],
  ];
  for (const [what, actual, expected] of cases) test(`${what}: ${expected}`, () => assert.equal(actual, expected));

  test("a proxy in front of the name is called by its name, and what to do with it", () => {
    const { dns_detail } = evaluateDns(fresh, { addresses: found("172.67.1.1", "2606:4700::1111"), texts: none }, own);
    assert.match(
      dns_detail,
      /proxy \(172\.67\.1\.1, 2606:4700::1111\).*DNS only.*TXT record _berth\.app\.example\.com with the value berth-proof=1/,
    );
  });
});

describe("how often a name is looked up", () => {
  const next = (domain: Partial<KnownDomain>, addresses: DnsAnswer) => {
    const known = { ...fresh, ...domain };
    return nextCheckMs(known, evaluateDns(known, { addresses, texts: none }, own), now) / 1000;
  };
  test("one that is awaited: often at first, then less and less", () => {
    assert.deepEqual(
      [0.5, 2, 48].map((hours) => next({ created_at: at(hours) }, none)),
      [15, 300, 3600],
    );
  });
  test("one that stands: hourly; one that was lost or not answered for: soon", () => {
    assert.equal(next({}, found("192.0.2.1")), 3600);
    assert.equal(next({ verified_at: at(100), created_at: at(100) }, none), 120);
    assert.equal(next({}, { outcome: "unavailable" }), 120);
  });
});

test("a name's certificate is promised only where this installation orders or has one", () => {
  type Row = Parameters<typeof presentDomain>[1];
  const row = {
    ...{
      ...fresh,
      created_at: at(1),
      zone: "example.com",
      ssl_status: "none",
      ssl_detail: null,
      ssl_next_attempt_at: null,
    },
  } as unknown as Row;
  const settings = {
    publicAddresses: own,
    isPublic: true,
    graceMs: 0,
    servesHttps: () => false,
    appsDomain: "apps.test",
  };
  const detailOf = (dns_status: string, ordersCertificates: boolean, covered = false) => {
    const given = { ...settings, ordersCertificates, servesHttps: () => covered, controlHost: "berth.test" };
    return presentDomain(given as Parameters<typeof presentDomain>[0], { ...row, dns_status } as Row).ssl_detail;
  };
  for (const status of ["pending", "mismatch", "ok"]) {
    assert.match(detailOf(status, true), /orders one as soon as/);
    const promised = detailOf(status, false);
    assert.match(promised, /^The name has no certificate/);
    assert.doesNotMatch(promised, /order|soon|will|renew|yet/);
    assert.match(detailOf(status, false, true), /certificate of the platform covers/);
  }
});
