import assert from "node:assert/strict";
import { test } from "node:test";
import {
  sampleBuild,
  sampleDeployment,
  sampleDomain,
  sampleFailure,
  sampleProject,
} from "../../../test/support/contract-samples.ts";
import { groups } from "../../cli/mcp/groups.ts";
import { argumentsOf } from "../../cli/mcp/input-schema.ts";
import { toolCallFor } from "../../cli/mcp/in-tool-words.ts";
import { route, type RouteName } from "../../contract/routes.ts";
import { diagnosis, type ProjectState } from "./rules.ts";

const now = new Date("2026-01-02T04:00:00.000Z");
const active = sampleProject({
  active_deployment: { id: "dep_1", number: 1, status: "active", commit: null, activated_at: now.toISOString() },
});
const nothing: ProjectState = {
  project: active,
  deployments: { deployments: [sampleDeployment()], next_cursor: null },
  builds: { builds: [sampleBuild()], next_cursor: null },
  logs: null,
  domains: { domains: [] },
  metrics: null,
  timeline: { timeline: [], next_cursor: null },
  cron: null,
  database: null,
  backups: null,
};

const codes = (state: Partial<ProjectState>) =>
  diagnosis({ ...nothing, ...state }, now).map(({ code, severity }) => [severity, code]);

function crash(minutesAgo: number, action = "replica.crashed") {
  const at = new Date(now.getTime() - minutesAgo * 60_000).toISOString();
  const actor = { type: "platform" as const, name: "berth", token_id: null };
  const place = { project: "demo", target: "deployment 1, replica 0", detail: { exit_code: 1 }, link: null };
  return { id: `evt_${minutesAgo}`, at, kind: "replica" as const, action, summary: "Crashed", actor, ...place };
}

function traffic(total: { requests: number; errors: number; p95?: number }): NonNullable<ProjectState["metrics"]> {
  const looks = {
    looks: 0,
    failed: 0,
    dns_ms: null,
    connect_ms: null,
    tls_ms: null,
    first_byte_ms: null,
    total_ms: null,
    slowest_ms: null,
  };
  const sums = {
    requests: total.requests,
    errors: total.errors,
    requests_per_second: 1,
    answers: { "1xx": 0, "2xx": total.requests - total.errors, "3xx": 0, "4xx": 0, "5xx": total.errors },
    error_rate: total.errors / total.requests,
    latency_ms: { mean: 1, p50: 1, p95: total.p95 ?? 1, p99: 1 },
    bytes_in: 0,
    bytes_out: 0,
    page_load: looks,
  };
  const times = { from: "2026-01-02T03:00:00.000Z", to: now.toISOString(), bucket_seconds: 60 };
  const buckets = [{ at: "2026-01-02T03:30:00.000Z", ...sums }];
  const deployments = [
    { id: "dep_1", number: 7, at: "2026-01-02T03:29:00.000Z", trigger: "push" as const, commit: "c" },
  ];
  return { range: "1h", ...times, total: sums, buckets, page: null, replicas: [], deployments };
}

test("a healthy project has no findings", () => {
  assert.deepEqual(codes({}), []);
});

test("a deleted project is told as that alone", () => {
  assert.deepEqual(
    codes({
      project: sampleProject({ state: "deleted" }),
      builds: { builds: [sampleBuild({ status: "failed" })], next_cursor: null },
    }),
    [["down", "project_deleted"]],
  );
});

test("a project without code, one that is being built, and one whose first build failed are told apart", () => {
  const project = sampleProject();
  assert.deepEqual(
    codes({ project, builds: { builds: [], next_cursor: null }, deployments: { deployments: [], next_cursor: null } }),
    [["down", "nothing_deployed"]],
  );
  assert.deepEqual(codes({ project, builds: { builds: [sampleBuild({ status: "running" })], next_cursor: null } }), [
    ["notice", "building"],
  ]);
  const failed = sampleBuild({ status: "failed", failure: sampleFailure() });
  assert.deepEqual(codes({ project, builds: { builds: [failed], next_cursor: null } }), [["down", "install_failed"]]);
  assert.deepEqual(codes({ builds: { builds: [failed], next_cursor: null } }), [["broken", "install_failed"]]);
});

test("a failed deployment gives its own failure's code", () => {
  const failed = sampleDeployment({
    status: "failed",
    failure: sampleFailure({ stage: "health", code: "health_timeout" }),
  });
  assert.deepEqual(codes({ deployments: { deployments: [failed], next_cursor: null } }), [
    ["broken", "health_timeout"],
  ]);
});

test("a failed build replaces the failure of an older deployment, and says that nothing serves where nothing does", () => {
  const at = (minute: number) => `2026-01-02T03:0${minute}:00.000Z`;
  const failure = sampleFailure();
  const failedAt = (minute: number) => ({ status: "failed" as const, failure, created_at: at(minute) });
  const state = (build: number, deployment: number) => ({
    ...nothing,
    project: sampleProject(),
    builds: { builds: [sampleBuild(failedAt(build))], next_cursor: null },
    deployments: { deployments: [sampleDeployment(failedAt(deployment))], next_cursor: null },
  });
  const [only, ...others] = diagnosis(state(2, 1), now);
  assert.deepEqual(others, []);
  assert.match(only?.advice ?? "", /nothing is deployed yet/);
  assert.equal(diagnosis(state(1, 2), now).length, 2);
});

test("the failure of the likeliest cause comes with it, for its hint to be read first", () => {
  const failure = sampleFailure({ hint: "Commit the lock file." });
  const [finding] = diagnosis(
    { ...nothing, builds: { builds: [sampleBuild({ status: "failed", failure })], next_cursor: null } },
    now,
  );
  assert.equal(finding?.failure?.hint, "Commit the lock file.");
});

test("single crashes, a loop of crashes and a lack of memory are told apart; old crashes are forgotten", () => {
  const withCrashes = (...timeline: ReturnType<typeof crash>[]) => codes({ timeline: { timeline, next_cursor: null } });
  assert.deepEqual(withCrashes(crash(10)), [["broken", "crashes"]]);
  assert.deepEqual(withCrashes(...[1, 1, 2, 3, 4].map((minutes) => crash(minutes))), [["broken", "crash_loop"]]);
  assert.deepEqual(withCrashes(crash(1, "replica.out_of_memory")), [["broken", "out_of_memory"]]);
  assert.deepEqual(withCrashes(crash(120)), []);
});

test("many errors are told with the deployment that came before them, few are not", () => {
  const [finding] = diagnosis({ ...nothing, metrics: traffic({ requests: 100, errors: 20 }) }, now);
  assert.ok(finding?.code === "server_errors");
  assert.equal((finding.seen as { after_deployment?: number }).after_deployment, 7);
  assert.deepEqual(codes({ metrics: traffic({ requests: 100, errors: 2 }) }), []);
  assert.deepEqual(codes({ metrics: traffic({ requests: 100, errors: 0, p95: 3000 }) }), [["notice", "slow"]]);
});

test("a hostname that leads elsewhere is told with the records to create", () => {
  const lost = sampleDomain({ dns_status: "mismatch" });
  const [finding] = diagnosis({ ...nothing, domains: { domains: [lost] } }, now);
  assert.ok(finding?.code === "dns_mismatch");
  assert.deepEqual((finding.seen as { records: unknown }).records, lost.instructions.records);
});

test("a hostname without records to create is told with what the platform says of it", () => {
  const { instructions, ...domain } = sampleDomain();
  const unserved = { ...domain, instructions: { ...instructions, records: [], note: "No public address yet." } };
  const [finding] = diagnosis({ ...nothing, domains: { domains: [unserved] } }, now);
  assert.match(finding?.advice ?? "", /No public address yet/);
});

test("the worst comes first", () => {
  const failed = sampleBuild({ status: "failed", failure: sampleFailure() });
  const found = codes({
    project: sampleProject(),
    builds: { builds: [failed], next_cursor: null },
    domains: { domains: [sampleDomain()] },
  });
  assert.deepEqual(found, [
    ["down", "install_failed"],
    ["broken", "dns_pending"],
  ]);
});

test("every next step names a tool with an action that there is and arguments that it takes", () => {
  const failed = sampleDeployment({ status: "failed", failure: sampleFailure() });
  const states: Partial<ProjectState>[] = [
    { project: sampleProject({ state: "deleted" }) },
    {
      builds: { builds: [sampleBuild({ status: "failed" })], next_cursor: null },
      deployments: { deployments: [failed], next_cursor: null },
    },
    { project: sampleProject(), builds: { builds: [sampleBuild({ status: "running" })], next_cursor: null } },
    {
      timeline: { timeline: [crash(1)], next_cursor: null },
      metrics: traffic({ requests: 100, errors: 50, p95: 9000 }),
    },
    { domains: { domains: [sampleDomain(), sampleDomain({ dns_status: "ok", ssl_status: "failed" })] } },
  ];
  for (const { next } of states.flatMap((state) => diagnosis({ ...nothing, ...state }, now))) {
    assert.ok(next);
    const call = toolCallFor(next);
    assert.ok(
      groups.some(({ name }) => call.tool === name || call.tool === `${name}_change`),
      call.tool,
    );
    const known = argumentsOf(route(next.route as RouteName)).map(({ name }) => name);
    for (const name of Object.keys(call.arguments))
      assert.ok(["action", ...known].includes(name), `${call.tool}.${name}`);
  }
});
