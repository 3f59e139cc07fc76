import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sampleHealth } from "../../../test/support/contract-samples.ts";
import type { Finding } from "../../features/status/status.ts";
import {
  evaluateBackups,
  evaluateCertificates,
  evaluateCron,
  evaluateDatabases,
  evaluateDiskLimits,
  evaluateDomains,
  evaluateHealth,
  evaluateWork,
} from "./evaluate-projects.ts";

const subject = "main/shop";
const hour = 3600;

/** Returns the status of the project and of its one subject. */
function statuses(findings: readonly Finding[]) {
  return findings.map((finding) => [finding.subject, finding.status]);
}

const fine = [["", "ok"]];
const bad = (status: string) => [
  ["", status],
  [subject, status],
];

describe("databases", () => {
  const table = [
    { name: "are ok when all answer", given: { total: 3, troubled: [], silent: [] }, expected: fine },
    {
      name: "fail when one does not answer",
      given: { total: 3, troubled: [], silent: [subject] },
      expected: bad("fail"),
    },
    {
      name: "fail when one could not be started",
      given: { total: 1, troubled: [{ subject, status: "failed", seconds: 5 }], silent: [] },
      expected: bad("fail"),
    },
    {
      name: "may take a while to be made",
      given: { total: 1, troubled: [{ subject, status: "provisioning", seconds: 60 }], silent: [] },
      expected: fine,
    },
    {
      name: "are a warning when that takes long",
      given: { total: 1, troubled: [{ subject, status: "provisioning", seconds: 400 }], silent: [] },
      expected: bad("warn"),
    },
  ] as const;
  for (const { name, given, expected } of table)
    test(name, () => assert.deepEqual(statuses(evaluateDatabases(given)), expected));

  test("of many that are down, 20 are listed and all are counted", () => {
    const silent = Array.from({ length: 500 }, (_, index) => `main/p${index}`);
    const findings = evaluateDatabases({ total: 500, troubled: [], silent });
    assert.equal(findings.length, 21);
    assert.match(findings[0]?.detail ?? "", /500/);
  });
});

describe("backups", () => {
  const most = { seconds: 30 * hour, daily: true };
  const age = (more: object) => [
    { subject, database_seconds: 100 * hour, backup_seconds: 5 * hour, verification: null, ...more },
  ];
  const table = [
    { name: "are ok while the newest is young", given: age({}), expected: fine },
    { name: "are a warning when it is too old", given: age({ backup_seconds: 31 * hour }), expected: bad("warn") },
    { name: "fail when it is twice too old", given: age({ backup_seconds: 60 * hour }), expected: bad("fail") },
    { name: "fail when there never was one", given: age({ backup_seconds: null }), expected: bad("fail") },
    {
      name: "of a new database are not missing yet",
      given: age({ backup_seconds: null, database_seconds: hour }),
      expected: fine,
    },
    {
      name: "fail when the newest did not pass its verification",
      given: age({ verification: "mismatch" }),
      expected: bad("fail"),
    },
  ] as const;
  for (const { name, given, expected } of table)
    test(name, () => assert.deepEqual(statuses(evaluateBackups(given, most)), expected));

  test("that are too new to exist are not counted as if they were there", () => {
    const [finding] = evaluateBackups(age({ backup_seconds: null, database_seconds: hour }), most);
    assert.match(finding?.detail ?? "", /^1 database too new to have a backup/);
  });

  test("that are switched off are said to be, and their age does not matter", () => {
    const [finding] = evaluateBackups(age({ backup_seconds: null }), { ...most, daily: false });
    assert.equal(finding?.status, "off");
    assert.match(finding?.detail ?? "", /switched off/);
  });
});

describe("cron", () => {
  const table = [
    { jobs: 0, due: null, waiting: null, status: "ok" },
    { jobs: 9, due: 5, waiting: null, status: "ok" },
    { jobs: 9, due: 40, waiting: null, status: "warn" },
    { jobs: 9, due: null, waiting: 40, status: "warn" },
    { jobs: 9, due: 300, waiting: 2, status: "fail" },
  ] as const;
  for (const { jobs, due, waiting, status } of table) {
    test(`is ${status} with ${jobs} jobs, ${due} s behind and calls that wait ${waiting} s`, () =>
      assert.equal(evaluateCron({ jobs, due_seconds: due, waiting_seconds: waiting }).status, status));
  }
});

describe("an application", () => {
  const now = new Date("2026-01-02T03:04:00.000Z");
  const ago = (seconds: number) => new Date(now.getTime() - seconds * 1000).toISOString();
  const table = [
    { name: "that serves is fine", state: "healthy", loop: false, since: ago(900), expected: fine },
    { name: "that crashed twice is a warning", state: "crashing", loop: false, since: ago(60), expected: bad("warn") },
    {
      name: "that crashed five times is a failure",
      state: "crashing",
      loop: true,
      since: ago(1),
      expected: bad("fail"),
    },
    {
      name: "that was down for a moment is a warning",
      state: "down",
      loop: false,
      since: ago(5),
      expected: bad("warn"),
    },
    { name: "that stays down is a failure", state: "down", loop: false, since: ago(40), expected: bad("fail") },
    { name: "that is slow is a warning", state: "degraded", loop: false, since: ago(900), expected: bad("warn") },
    { name: "that is being deployed is fine", state: "deploying", loop: false, since: ago(900), expected: fine },
  ] as const;
  for (const { name, expected, state, loop, since } of table) {
    const health = sampleHealth({ state, since, sentence: "It does not serve." });
    test(name, () => assert.deepEqual(statuses(evaluateHealth([{ subject, health, is_loop: loop }], now)), expected));
  }
});

describe("builds and deployments", () => {
  const limits = { buildMs: 900_000, deploymentMs: 660_000 };
  const work = { subject, kind: "build", number: 3, is_running: true, seconds: 60, abandoned_seconds: -20 } as const;
  const table = [
    { name: "are ok within their time", given: {}, status: "ok" },
    { name: "fail when they are under way for longer", given: { seconds: 1300 }, status: "fail" },
    { name: "of a deployment have their own limit", given: { kind: "deployment", seconds: 1000 }, status: "fail" },
    { name: "fail when nobody works on them any more", given: { abandoned_seconds: 200 }, status: "fail" },
    {
      name: "may wait for a free place",
      given: { is_running: false, seconds: 1000, abandoned_seconds: null },
      status: "ok",
    },
    {
      name: "are a warning when they wait for too long",
      given: { is_running: false, seconds: 2000, abandoned_seconds: null },
      status: "warn",
    },
  ] as const;
  for (const { name, given, status } of table)
    test(name, () => assert.equal(evaluateWork([{ ...work, ...given }], limits)[0]?.status, status));
});

describe("shares of the disk", () => {
  const near = { subject: "shop", kind: "storage", bytes: 50, limit: 64, access: "open" } as const;
  const table = [
    { name: "that are within their limits are ok", near: [], status: "ok" },
    { name: "near a limit are a warning", near: [near], status: "warn" },
    { name: "over a limit fail", near: [{ ...near, bytes: 70 }], status: "fail" },
    { name: "that may not be written fail", near: [{ ...near, access: "read_only" }], status: "fail" },
    { name: "fail with one of several", near: [near, { ...near, kind: "images", bytes: 70 }], status: "fail" },
  ] as const;
  for (const { name, near: given, status } of table)
    test(name, () => assert.deepEqual(statuses(evaluateDiskLimits(given))[0], ["", status]));
});

describe("hostnames", () => {
  const troubled = (kind: "lost" | "late" | "certificate" | "ending", seconds = 900) => [
    { subject: "www.example.com", kind, seconds, detail: null },
  ];
  const table = [
    { name: "that all lead here are ok", findings: evaluateDomains([], 4), status: "ok" },
    { name: "whose records were lost are a warning", findings: evaluateDomains(troubled("lost"), 4), status: "warn" },
    { name: "that nobody looks up are a warning", findings: evaluateDomains(troubled("late"), 4), status: "warn" },
    {
      name: "without a certificate are another check's",
      findings: evaluateDomains(troubled("certificate"), 4),
      status: "ok",
    },
    {
      name: "without a certificate fail there",
      findings: evaluateCertificates(troubled("certificate"), 0),
      status: "fail",
    },
    {
      name: "whose certificate ends in ten days are a warning",
      findings: evaluateCertificates(troubled("ending", 240 * hour), 1),
      status: "warn",
    },
    {
      name: "whose certificate ends in two days fail",
      findings: evaluateCertificates(troubled("ending", 48 * hour), 1),
      status: "fail",
    },
    { name: "are not asked for certificates that nobody issues", findings: evaluateCertificates([], 0), status: "off" },
  ] as const;
  for (const { name, findings, status } of table) test(name, () => assert.equal(findings[0]?.status, status));
});
