import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { HaproxyEdge } from "../src/adapters/edge-haproxy/haproxy-edge.ts";
import type { Result } from "../src/contract/routes.ts";
import { prometheusText } from "../src/daemon/prometheus.ts";
import { createHttpServer } from "../src/http/server.ts";
import { silentLog } from "../src/kit/log.ts";
import { until } from "../src/kit/until.ts";
import { createDriver } from "../src/reconcile/driver.ts";
import { edgeTask } from "../src/reconcile/edge/edge-task.ts";
import { edgeFamilies } from "../src/features/metrics/metrics.ts";
import { metricsTask } from "../src/reconcile/metrics/metrics-task.ts";
import { pageProbesTask } from "../src/reconcile/page-probes/page-probes-task.ts";
import type { Platform } from "../src/reconcile/platform.ts";
import { makeCertificate } from "../src/ports/edge-stage.suite.ts";
import { createTestEdge, edgePid } from "./support/edges.ts";
import { readyReplica, testBuild, testDeployment, testProject } from "./support/fixtures.ts";
import { testApi, testOrganization, type TestApi, type TestOrganization } from "./support/test-platform.ts";
import { guardMs } from "./support/eventually.ts";
import { platformBeside } from "./support/platform-double.ts";
import { instanceDouble, runtimeDouble } from "./support/port-doubles.ts";

let api: TestApi;
let org: TestOrganization;
let edge: HaproxyEdge;
let app: Server;
let platform: Platform;
let folder: string;
let slug: string;
let hostname: string;
const agents: (string | undefined)[] = [];
const running = new AbortController().signal;

before(async () => {
  api = await testApi();
  org = await testOrganization(api.database.db, "home");
  folder = await mkdtemp(join(tmpdir(), "berth-metrics-"));
  edge = makeEdge();
  app = createServer((incoming, response) => {
    agents.push(incoming.headers["user-agent"]);
    response.writeHead(incoming.url === "/broken" ? 500 : 200).end("page");
  });
  await new Promise<void>((done) => app.listen(0, "127.0.0.1", done));
  const deployment = await deployedProject();
  const instance = instanceDouble({ workload_id: deployment });
  const used = { workload_id: deployment, ordinal: 0, attempt: 1, cpu_seconds: 1, memory_bytes: 2e6, processes: 2 };
  const runtime = runtimeDouble({ observe: async () => [instance], measure: async () => [used] });
  platform = platformBeside(api, { ports: { edge, runtime } });
  await edgeTask(platform).run(running);
});
after(async () => {
  await edge.stop(0);
  await api.close();
  app.close();
  await rm(folder, { recursive: true, force: true });
});

function makeEdge(options: { readonly drainLimitMs?: number } = {}): HaproxyEdge {
  return createTestEdge({ stateDir: folder, listenTlsPort: 0, ...options });
}

async function deployedProject(): Promise<string> {
  const project = await testProject(api.platform, org);
  slug = project.slug;
  hostname = `${project.id}.test`;
  const owner = { org_id: org.id, project_id: project.id };
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  const id = await testDeployment(api.platform, owner, { build_id, number: 1, status: "active" });
  const address = { host: "127.0.0.1", port: (app.address() as AddressInfo).port };
  await readyReplica(api.platform.db, { org_id: org.id, deployment_id: id, address });
  return id;
}

async function visit(path = "/"): Promise<number> {
  const { listen } = await edge.observe();
  const port = Number(listen?.split(":").at(-1));
  return new Promise((resolve, reject) => {
    const asked = request({ host: "127.0.0.1", port, path, headers: { host: hostname }, agent: false }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode ?? 0));
    });
    asked.on("error", reject);
    asked.end();
  });
}

async function shown(): Promise<Result<"metrics.get">> {
  const called = await api.call("GET", `/v1/projects/${slug}/metrics`, { token: org.member });
  assert.equal(called.status, 200, called.text);
  return called.body as unknown as Result<"metrics.get">;
}

test("requests through the edge are counted, also by two control planes that share it", async () => {
  for (let i = 0; i < 10; i += 1) await visit();
  await visit("/broken");
  await Promise.all([metricsTask(platform).run(running), metricsTask(platform).run(running)]);
  const { total, replicas } = await shown();
  assert.equal(total.requests, 11);
  assert.deepEqual([total.answers["2xx"], total.answers["5xx"], total.errors], [10, 1, 1]);
  assert.ok(total.bytes_out >= 44);
  assert.ok(total.latency_ms.p99 !== null && total.latency_ms.p50 !== null);
  assert.deepEqual([replicas[0]?.memory_bytes, replicas[0]?.processes], [2e6, 2]);
});

test("a replaced edge loses no counts, and a killed edge starts counting again from zero", async () => {
  const task = metricsTask(platform);
  const before = (await shown()).total.requests;
  for (let i = 0; i < 4; i += 1) await visit();
  edge.detach();
  edge = makeEdge({ drainLimitMs: 1000 });
  platform = { ...platform, ports: { ...platform.ports, edge } };
  await edgeTask(platform).run(running);
  for (let i = 0; i < 3; i += 1) await visit();
  await task.run(running);
  await metricsTask(platform).run(running);
  assert.equal((await shown()).total.requests, before + 7);
  const pid = edgePid(folder);
  process.kill(pid, "SIGKILL");
  const back = await until(async () => ((await visit().catch(() => 0)) === 200 ? true : undefined), {
    timeoutMs: guardMs,
  });
  assert.equal(back, true);
  assert.notEqual(edgePid(folder), pid);
  await metricsTask(platform).run(running);
  const after = (await shown()).total.requests;
  assert.ok(after >= before + 8, `${after} after ${before}`);
});

test("the platform's probe of the first page goes through the edge and is not counted as a visit", async () => {
  await metricsTask(platform).run(running);
  const before = (await shown()).total.requests;
  agents.length = 0;
  await pageProbesTask(platform).run(running);
  await api.database.db
    .updateTable("page_look")
    .set({ next_at: new Date(0) })
    .execute();
  const task = pageProbesTask(platform);
  await task.run(running);
  await task.settle?.();
  await metricsTask(platform).run(running);
  const { total, page } = await shown();
  assert.ok(agents.includes("berth-probe/1.0"));
  assert.equal(total.requests, before);
  assert.equal(page?.ok, true);
  assert.equal(page?.http_status, 200);
  assert.ok(page?.connect_ms !== null && page?.first_byte_ms !== null && page?.total_ms !== null);
  assert.equal(page?.tls_ms, null);
  assert.equal(total.page_load.looks, 1);
});

test("a page served over HTTPS is probed over HTTPS, and the probe measures the handshake separately", async () => {
  const certificate = await makeCertificate([hostname]);
  const encrypted = { ...platform, certificates: { ...platform.certificates, own: () => [certificate] } };
  const edges = edgeTask(encrypted);
  // The first run loads the certificate, and the second run redirects visitors to HTTPS.
  for (let turn = 0; turn < 2; turn += 1) await edges.run(running);
  await api.database.db
    .updateTable("page_look")
    .set({ next_at: new Date(0) })
    .execute();
  const task = pageProbesTask(encrypted);
  await task.run(running);
  await task.settle?.();
  const { page } = await shown();
  assert.deepEqual([page?.ok, page?.http_status], [true, 200]);
  assert.ok(typeof page?.tls_ms === "number" && page.tls_ms > 0, `${page?.tls_ms}`);
});

test("only the operator can read all metrics in Prometheus format", async () => {
  const reconcilers = createDriver({ tasks: [metricsTask(platform)], wakeups: platform.wakeups, log: silentLog });
  const read = () => prometheusText(platform, reconcilers, "1.2.3");
  const metrics = { path: "/metrics", scope: "metrics:read", contentType: "text/plain; version=0.0.4", read } as const;
  const server = createHttpServer({ platform: api.platform, log: silentLog, checks: [], operatorTexts: [metrics] });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  const ask = (token?: string) =>
    fetch(`http://127.0.0.1:${port}/metrics`, {
      headers: { connection: "close", ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
    });
  for (const [token, status] of [
    [undefined, 401],
    [org.member, 403],
    [org.owner, 403],
    [org.operator, 200],
  ] as const) {
    const response = await ask(token);
    assert.equal(response.status, status);
    const text = await response.text();
    if (status !== 200) continue;
    assert.match(
      text,
      new RegExp(`^berth_project_requests_total\\{project="${slug}",org="home",edge="\\w+",class="2xx"\\} \\d+$`, "m"),
    );
    assert.match(text, /^berth_project_latency_seconds_bucket\{.*le="\+Inf"\} \d+$/m);
    assert.match(text, /^berth_replica_memory_bytes\{.*replica="0"\} 2000000$/m);
    assert.match(text, /^berth_page_up\{.*\} 1$/m);
    assert.match(text, /^berth_task_failing\{task="metrics"\} 0$/m);
    const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    for (const line of lines) assert.match(line, /^[a-z_]+(\{([a-z]+="[^"]*",?)+\})? [-+.\de]+$/);
    const helped = text.match(/^# TYPE (\S+)/gm) ?? [];
    assert.equal(new Set(helped).size, helped.length);
  }
  await server.close();
});

test("workers of one HAProxy that count for the same project have different labels", async () => {
  const { id } = await testProject(api.platform, org);
  const usage = { project_id: id, requests: 1, by_class: { 2: 1 }, bytes_in: 0, bytes_out: 0, latency_sum_ms: 1 };
  const counters = ["haproxy-4f9a1c22-811-5001", "haproxy-4f9a1c22-977-7301"];
  const usages = counters.map((counter) => ({ ...usage, counter, latency_buckets: [] }));
  const [requests] = await edgeFamilies(api.database.db, usages);
  assert.equal(new Set(requests?.samples.map(({ labels }) => labels?.["edge"])).size, 2);
});
