import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sql } from "kysely";
import { latencyBucketsMs, type EdgeUsage } from "../../ports/edge.ts";
import type { Result } from "../../contract/routes.ts";
import { recordCrash } from "../activity/activity.ts";
import { readyReplica, testBuild, testDeployment, testProject } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import {
  addPageProbe,
  addReplicaSamples,
  addTraffic,
  schedulePageProbes,
  pruneMetrics,
  claimDuePageProbes,
} from "./metrics.ts";
import { quantile } from "./rules.ts";

const api = await sharedApi();
const org = await testOrganization(api.database.db, "home", { maxProjects: 100 });

type Metrics = Result<"metrics.get">;

async function metricsOf(slug: string, range = "1h"): Promise<Metrics> {
  const called = await api.call("GET", `/v1/projects/${slug}/metrics?range=${range}`, { token: org.member });
  assert.equal(called.status, 200, called.text);
  return called.body as unknown as Metrics;
}

/** An edge's report of this many requests that all took 3 ms; the last `failed` ones got 500. */
function usage(project_id: string, counter: string, requests: number, failed = 0): EdgeUsage {
  const latency_buckets = [...latencyBucketsMs, Infinity].map((bound) => (bound >= 5 ? requests : 0));
  const by_class = { "2": requests - failed, ...(failed > 0 ? { "5": failed } : {}) };
  const bytes = { bytes_in: requests * 10, bytes_out: requests * 100 };
  return { counter, project_id, requests, by_class, ...bytes, latency_buckets, latency_sum_ms: requests * 3 };
}

describe("traffic", () => {
  test("is counted once, however often and by however many it is looked at", async () => {
    const { db } = api.database;
    const { id, slug } = await testProject(api.platform, org);
    const now = new Date();
    const look = (...usages: EdgeUsage[]) => addTraffic(db, usages, now);
    await Promise.all(Array.from({ length: 8 }, () => look(usage(id, "edge-1", 10))));
    await Promise.all([look(usage(id, "edge-1", 30, 5)), look(usage(id, "edge-1", 25))]);
    await look(usage(id, "edge-1", 20));
    const { total } = await metricsOf(slug);
    assert.equal(total.requests, 30);
    assert.equal(total.errors, 5);
    assert.equal(total.bytes_out, 3000);
  });

  test("of an edge that began anew, or of two edges, adds up", async () => {
    const { db } = api.database;
    const { id, slug } = await testProject(api.platform, org);
    const now = new Date();
    await addTraffic(db, [usage(id, "before", 40)], now);
    await addTraffic(db, [usage(id, "before", 50), usage(id, "behind", 7)], now);
    await addTraffic(db, [usage(id, "behind", 100)], now);
    const { total } = await metricsOf(slug);
    assert.equal(total.requests, 150);
  });

  test("of a project that is not known is left out", async () => {
    await addTraffic(api.database.db, [usage("prj_unknown", "edge-1", 3)], new Date());
  });

  test("lies in buckets of every width, and empty ones are there too", async () => {
    const { db } = api.database;
    const { id, slug } = await testProject(api.platform, org);
    const now = Date.now();
    await addTraffic(db, [usage(id, "edge-1", 6)], new Date(now - 5 * 60_000));
    await addTraffic(db, [usage(id, "edge-1", 9)], new Date(now));
    for (const [range, count, width] of [
      ["1h", 61, 60],
      ["24h", 97, 900],
      ["7d", 169, 3600],
    ] as const) {
      const shown = await metricsOf(slug, range);
      assert.equal(shown.bucket_seconds, width);
      assert.equal(shown.buckets.length, count);
      assert.equal(shown.total.requests, 9);
      const hours = { "1h": 1, "24h": 24, "7d": 168 }[range];
      assert.ok(Date.parse(shown.to) - Date.parse(shown.from) >= hours * 3_600_000, `${range} is whole`);
      const starts = shown.buckets.map((bucket) => Date.parse(bucket.at));
      assert.ok(starts.every((at, index) => index === 0 || at - (starts[index - 1] ?? 0) === width * 1000));
      const full = shown.buckets.filter((bucket) => bucket.requests > 0);
      assert.equal(
        full.reduce((sum, bucket) => sum + bucket.requests, 0),
        9,
      );
      const empty = shown.buckets.find((bucket) => bucket.requests === 0);
      assert.deepEqual(empty?.latency_ms, { mean: null, p50: null, p95: null, p99: null });
    }
    const minutes = await metricsOf(slug);
    assert.deepEqual(
      minutes.buckets.filter((bucket) => bucket.requests > 0).map((bucket) => bucket.requests),
      [6, 3],
    );
    const bad = await api.call("GET", `/v1/projects/${slug}/metrics?range=2h`, { token: org.member });
    assert.equal(bad.status, 400);
  });
});

describe("latency", () => {
  const counts = (at: Record<number, number>) => [...latencyBucketsMs, Infinity].map((bound) => at[bound] ?? 0);

  test("percentiles lie inside the bucket that they fall into", () => {
    const latencies = counts({ 2: 90, 100: 9, 5000: 1 });
    const between = (value: number | null, low: number, high: number) =>
      assert.ok(value !== null && value > low && value <= high, `${value} is not in ${low}…${high}`);
    between(quantile(latencies, 0.5), 1, 2);
    between(quantile(latencies, 0.95), 50, 100);
    between(quantile(latencies, 0.999), 2000, 5000);
  });

  test("what is beyond the last bound is shown as that bound, and nothing as null", () => {
    assert.equal(quantile(counts({ [Infinity]: 3 }), 0.5), 30_000);
    assert.equal(quantile(counts({}), 0.5), null);
  });
});

describe("replicas", () => {
  test("processor time is not known over a gap of more than five minutes", async () => {
    const { slug, deployment_id } = await deployed();
    const now = Date.now();
    for (const [cpu_seconds, agoSeconds] of [
      [10, 602],
      [110, 301],
      [310, 0],
    ] as const) {
      const used = { cpu_seconds, memory_bytes: 1, processes: 1 };
      const samples = [{ deployment_id, process: "web", ordinal: 0, attempt: 1, ...used }];
      await addReplicaSamples(api.database.db, samples, new Date(now - agoSeconds * 1000));
    }
    const { replicas } = await metricsOf(slug);
    assert.deepEqual([...new Set(replicas[0]?.buckets.map(({ cpus }) => cpus))], [null]);
  });

  test("processor time counts from one measurement to the next, not over a restart of the application", async () => {
    const { db } = api.database;
    const { slug, deployment_id, owner } = await deployed();
    const address = { host: "127.0.0.1", port: 1 };
    await readyReplica(db, { org_id: owner.org_id, deployment_id, address });
    const now = Date.now();
    const sample = (attempt: number, cpu_seconds: number, agoSeconds: number) =>
      addReplicaSamples(
        db,
        [{ deployment_id, process: "web", ordinal: 0, attempt, cpu_seconds, memory_bytes: 50_000_000, processes: 3 }],
        new Date(now - agoSeconds * 1000),
      );
    await sample(1, 50, 1000);
    await sample(1, 100, 60);
    await sample(1, 115, 30);
    await sample(2, 1, 15);
    await sample(2, 4, 0);
    const crash = { out_of_memory: true, exit_code: null, restarts: 1, next_start_in_ms: 1000 };
    await recordCrash(db, { ...owner, deployment: 1, process: "web", replica: 0, ...crash });
    const { replicas, deployments, crashes, memory_limit_bytes } = await metricsOf(slug, "7d");
    assert.deepEqual(
      crashes.map(({ count, out_of_memory }) => [count, out_of_memory]),
      [[1, 1]],
    );
    assert.ok(replicas[0]?.buckets.some(({ at }) => at === crashes[0]?.at));
    assert.equal(memory_limit_bytes, api.platform.settings.workloadLimits.memoryBytes);
    const used = replicas[0]?.buckets.filter((bucket) => bucket.cpus !== null) ?? [];
    assert.ok(used.length > 0);
    // 15 s in 30 s and 3 s in 15 s: between a fifth and a half of a processor, wherever the hour ends.
    for (const { cpus } of used) assert.ok(cpus !== null && cpus >= 0.2 && cpus <= 0.5, String(cpus));
    assert.equal(replicas[0]?.memory_bytes, 50_000_000);
    assert.equal(replicas[0]?.processes, 3);
    assert.equal(replicas[0]?.ready, true);
    assert.equal(
      replicas[0]?.buckets.reduce((sum, bucket) => sum + bucket.restarts, 0),
      1,
    );
    assert.deepEqual(
      deployments.map(({ number, trigger }) => ({ number, trigger })),
      [{ number: 1, trigger: "push" }],
    );
  });
});

describe("first pages", () => {
  test("are taken once each period, by one of many, and only of what serves", async () => {
    const { db } = api.database;
    const { id } = await testProject(api.platform, org);
    const { owner } = await deployed();
    await schedulePageProbes(db, 60);
    await sql`update page_look set next_at = now() - interval '1 second'`.execute(db);
    const taken = await Promise.all([1, 2, 3, 4].map(() => claimDuePageProbes(db, { everySeconds: 60, limit: 100 })));
    const projects = taken.flat().map((look) => look.project_id);
    assert.equal(projects.filter((project) => project === owner.project_id).length, 1);
    assert.ok(!projects.includes(id));
    assert.deepEqual(await claimDuePageProbes(db, { everySeconds: 60, limit: 100 }), []);
  });

  test("are shown as the newest look and as means without the failed ones", async () => {
    const { db } = api.database;
    const { slug, owner } = await deployed();
    await schedulePageProbes(db, 60);
    const times = { dns_ms: null, connect_ms: 1, tls_ms: null, first_byte_ms: 20, total_ms: 30 };
    const seen = { http_status: 200, failure: null, ...times };
    const now = new Date();
    await addPageProbe(db, owner, seen, now);
    await addPageProbe(db, owner, { ...seen, tls_ms: 4, first_byte_ms: 40, total_ms: 50 }, now);
    const none = { dns_ms: null, connect_ms: null, tls_ms: null, first_byte_ms: null, total_ms: null };
    await addPageProbe(db, owner, { http_status: null, failure: "timeout", ...none }, now);
    const { total, page } = await metricsOf(slug);
    assert.deepEqual(total.page_load, {
      ...{ looks: 3, failed: 1, dns_ms: null, connect_ms: 1, tls_ms: 4 },
      ...{ first_byte_ms: 30, total_ms: 40, slowest_ms: 50 },
    });
    assert.deepEqual([page?.ok, page?.failure], [false, "timeout"]);
  });
});

test("what is older than it is kept is deleted, by width", async () => {
  const { db } = api.database;
  const { id } = await testProject(api.platform, org);
  const hours = (count: number) => new Date(Date.now() - count * 3_600_000);
  for (const [index, age] of [0, 4, 50, 300].entries())
    await addTraffic(db, [usage(id, `edge-${index}`, 5)], hours(age));
  await pruneMetrics(db, { hoursOfMinutes: 3, hoursOfQuarters: 48, days: 8 });
  const { rows } = await sql<{ bucket_seconds: number; count: number }>`
    select bucket_seconds, count(*) as count from project_metric where project_id = ${id} group by 1 order by 1`.execute(
    db,
  );
  assert.deepEqual(rows, [
    { bucket_seconds: 15, count: 1 },
    { bucket_seconds: 60, count: 1 },
    { bucket_seconds: 900, count: 2 },
    { bucket_seconds: 3600, count: 3 },
  ]);
});

async function deployed() {
  const { db } = api.database;
  const { id, slug } = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id: id };
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  const deployment_id = await testDeployment(api.platform, owner, { build_id, number: 1, status: "active" });
  const now = new Date();
  await db
    .updateTable("deployment")
    .set({ activated_at: now, finished_at: now })
    .where("id", "=", deployment_id)
    .execute();
  await db.insertInto("replica").values({ org_id: org.id, deployment_id, ordinal: 0, ready_attempt: 1 }).execute();
  return { slug, owner, deployment_id };
}
