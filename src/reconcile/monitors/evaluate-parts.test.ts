import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { TaskStatus } from "../driver.ts";
import {
  evaluateEdge,
  evaluateIsolation,
  evaluateControlPlanes,
  evaluateNotifications,
  evaluateOwnDatabase,
  evaluatePlatformBackups,
  evaluateScheduler,
  evaluateTasks,
} from "./evaluate-parts.ts";

const now = new Date("2026-01-02T03:00:00.000Z");
const ago = (seconds: number) => new Date(now.getTime() - seconds * 1000).toISOString();
const dayMs = 86_400_000;

describe("the control plane's database", () => {
  const standard = { answeredInMs: 3, connections: 10, most: 100, isListening: true };
  const table = [
    { name: "is ok", given: {}, status: "ok" },
    { name: "is a warning when it is slow", given: { answeredInMs: 1500 }, status: "warn" },
    { name: "is a warning when wake-ups do not arrive", given: { isListening: false }, status: "warn" },
    { name: "is a warning with few connections left", given: { connections: 80 }, status: "warn" },
    { name: "fails with hardly any connection left", given: { connections: 95 }, status: "fail" },
  ] as const;
  for (const { name, given, status } of table) {
    test(name, () => assert.equal(evaluateOwnDatabase({ ...standard, ...given }).status, status));
  }
});

describe("the backups of the platform", () => {
  const made = (status: "completed" | "failed" | "running", hoursAgo: number) => ({
    ...{ status, created_at: ago(hoursAgo * 3600), problem: status === "failed" ? "The disk is full." : null },
  });
  const table = [
    { name: "are ok before the first", backups: [], status: "ok" },
    { name: "are ok while the first is made", backups: [made("running", 0)], status: "ok" },
    { name: "are ok with one of last night", backups: [made("completed", 20)], status: "ok" },
    { name: "fail when the newest failed", backups: [made("failed", 1), made("completed", 20)], status: "fail" },
    {
      name: "warn when a repository is left out",
      backups: [{ ...made("completed", 1), problem: "The repository of prj_1 is left out." }],
      status: "warn",
    },
    { name: "fail when the newest is old", backups: [made("completed", 40)], status: "fail" },
  ] as const;
  for (const { name, backups, status } of table)
    test(name, () => assert.equal(evaluatePlatformBackups(backups, now, 30 * 3_600_000).status, status));

  test("are shown with their age, or why the newest failed", () => {
    const { detail } = evaluatePlatformBackups([made("completed", 20)], now, 30 * 3_600_000);
    assert.equal(detail, "The newest backup of the platform is 20 h old.");
    const failed = evaluatePlatformBackups([{ ...made("failed", 1), problem: "No space." }], now, 30 * 3_600_000);
    assert.equal(failed.detail, "The newest backup of the platform failed. No space.");
  });
});

describe("the edge", () => {
  const edge = (running: boolean, route_version: number) => ({
    running,
    route_version,
    certificate_version: 0,
    listen: "127.0.0.1:8080",
    listen_tls: null,
    detail: "",
  });
  const table = [
    { name: "fails when it does not run", status: evaluateEdge(edge(false, 0), null), expected: "fail" },
    { name: "is not asked for a version at the first look", status: evaluateEdge(edge(true, 0), null), expected: "ok" },
    {
      name: "is a warning while it serves by older routes than the last look saw",
      status: evaluateEdge(edge(true, 6), 7),
      expected: "warn",
    },
    { name: "is ok with the routes of the last look", status: evaluateEdge(edge(true, 7), 7), expected: "ok" },
    { name: "may be ahead of the last look", status: evaluateEdge(edge(true, 9), 7), expected: "ok" },
  ] as const;
  for (const { name, status, expected } of table) test(name, () => assert.equal(status.status, expected));
});

describe("tasks", () => {
  const task = (more: Partial<TaskStatus>): TaskStatus => ({
    name: "apps",
    period_ms: 5000,
    last_run_at: ago(1),
    last_ok_at: ago(1),
    detail: "fine",
    failing: false,
    ...more,
  });
  const table = [
    { name: "are ok when they ran in time", task: task({}), status: "ok" },
    { name: "may take a minute beyond their period", task: task({ last_ok_at: ago(70) }), status: "ok" },
    { name: "are late after that", task: task({ last_ok_at: ago(90) }), status: "warn" },
    { name: "fail when they hang", task: task({ last_ok_at: ago(400) }), status: "fail" },
    { name: "are judged by their own period", task: task({ period_ms: 600_000, last_ok_at: ago(1000) }), status: "ok" },
    { name: "are a warning while they fail", task: task({ failing: true, last_ok_at: ago(20) }), status: "warn" },
    { name: "fail when they fail for long", task: task({ failing: true, last_ok_at: ago(400) }), status: "fail" },
    { name: "that never ended count from the start", task: task({ last_ok_at: null }), status: "fail" },
  ] as const;
  for (const { name, task: given, status } of table) {
    test(name, () => assert.equal(evaluateTasks([given], now, dayMs)[0]?.status, status));
  }

  test("the text of a failing task is not shown, because it may name what only the log should", () => {
    const findings = evaluateTasks(
      [task({ failing: true, detail: "password authentication failed for user x" })],
      now,
      dayMs,
    );
    assert.doesNotMatch(JSON.stringify(findings), /password/);
  });

  test("a scheduler is late after 15 seconds and fails after a minute, or when there is none", () => {
    const statuses = [1, 20, 90].map(
      (seconds) => evaluateScheduler(task({ name: "cron", last_ok_at: ago(seconds) }), now, dayMs).status,
    );
    assert.deepEqual(statuses, ["ok", "warn", "fail"]);
    assert.equal(evaluateScheduler(undefined, now, dayMs).status, "fail");
  });
});

test("each missing part of the isolation is a warning with what helps", () => {
  const findings = evaluateIsolation([
    { part: "memory_limit", effect: "One may take all memory.", remedy: "Run as root." },
  ]);
  const [all, part] = findings;
  assert.deepEqual([all?.subject, all?.status, all?.quiet], ["", "warn", true]);
  assert.deepEqual([part?.subject, part?.status, part?.hint], ["memory_limit", "warn", "Run as root."]);
  assert.deepEqual(
    evaluateIsolation([]).map(({ status }) => status),
    ["ok"],
  );
});

test("a channel is a warning while messages wait for it, and fails when some were given up", () => {
  const evaluateQueue = (waiting: number, given_up: number, seconds: number) =>
    evaluateNotifications([{ notifier: "smtp", waiting, given_up, seconds }])[0]?.status;
  assert.deepEqual(
    [evaluateQueue(0, 0, 5), evaluateQueue(2, 0, 60), evaluateQueue(2, 0, 900), evaluateQueue(0, 1, 0)],
    ["ok", "ok", "warn", "fail"],
  );
});

test("a machine that has been silent for three minutes fails, by its name", () => {
  const findings = evaluateControlPlanes([
    { name: "a", seconds: 10 },
    { name: "b", seconds: 200 },
  ]);
  assert.deepEqual(
    findings.map(({ subject, status }) => [subject, status]),
    [
      ["", "fail"],
      ["b", "fail"],
    ],
  );
});
