import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { sampleHealth, sampleProject } from "../../test/support/contract-samples.ts";
import { freePort } from "../../test/support/free-port.ts";
import { goodToken, Refusal, startScriptedPlatform } from "../../test/support/scripted-platform.ts";
import type { Result } from "../contract/routes.ts";

const at = "2026-01-02T03:04:05.678Z";
const login = (url: string) => ({ url, token: goodToken });

type Status = Result<"status.get">;

function sampleStatus(status: "ok" | "warn" | "fail"): Status {
  const check = { machine: "host", subject: null, since: at, last_ok_at: at, checked_at: at };
  return {
    status,
    checked_at: at,
    open_alerts: 1,
    checks: [
      { ...check, check: "disk", status, detail: "97 % are used.", hint: status === "ok" ? null : "Make room." },
      { ...check, check: "memory", status: "ok", detail: "3 % are in use.", hint: null },
    ],
  };
}

for (const [status, exitCode] of [
  ["ok", 0],
  ["warn", 0],
  ["fail", 9],
] as const) {
  test(`a platform that is ${status} ends \`berth status\` with ${exitCode}`, async () => {
    await using platform = await startScriptedPlatform({ "status.get": () => sampleStatus(status) });
    await using user = await cliUser(login(platform.url));
    const shown = await user.berth(["status"]);
    assert.equal(shown.exitCode, exitCode);
    assert.match(shown.stdout, /disk +host .*97 % are used/);
    if (status !== "ok") assert.match(shown.stdout, /disk: Make room/);
  });
}

test("`berth doctor` examines this machine without a platform, and fails as a check does", async () => {
  await using user = await cliUser();
  const env = { BERTH_DATA: join(user.home, "none"), BERTH_HTTP_PORT: String(await freePort()) };
  const shown = await user.berth(["doctor", "--json"], { env });
  const { findings } = JSON.parse(shown.stdout) as { findings: { check: string; status: string }[] };
  assert.ok(
    findings.some(({ check, status }) => check === "programs" && status === "ok"),
    shown.stdout,
  );
  assert.equal(shown.exitCode, findings.some(({ status }) => status === "fail") ? 9 : 0);
  const text = await user.berth(["doctor"], { env: { ...env, BERTH_DOMAIN: "apps.invalid" } });
  assert.match(text.stdout, /fail +names +\S+ has no address\.\n +→ Point/);
  assert.equal(text.exitCode, 9);
});

test("--bad leaves out what is ok, and --json is the API's own document", async () => {
  await using platform = await startScriptedPlatform({ "status.get": () => sampleStatus("warn") });
  await using user = await cliUser(login(platform.url));
  assert.doesNotMatch((await user.berth(["status", "--bad"])).stdout, /memory/);
  assert.deepEqual(JSON.parse((await user.berth(["status", "--json"])).stdout), sampleStatus("warn"));
});

test("whoever is not the operator is refused", async () => {
  const refused = () => new Refusal("operator_only");
  await using platform = await startScriptedPlatform({
    "status.get": refused,
    "alerts.list": refused,
    "platform.overview": refused,
  });
  await using user = await cliUser(login(platform.url));
  for (const command of ["status", "alerts", "platform"]) assert.equal((await user.berth([command])).exitCode, 1);
});

test("alerts shows what is open, and with --all what is over", async () => {
  const alert = {
    id: "alt_1",
    check: "applications",
    machine: null,
    subject: "main/shop",
    severity: "critical",
    summary: "It keeps crashing.",
    hint: null,
    opened_at: at,
  } as const;
  await using platform = await startScriptedPlatform({
    "alerts.list": ({ query }) => ({
      alerts: query.get("all") === "true" ? [{ ...alert, resolved_at: at }] : [{ ...alert, resolved_at: null }],
      next_cursor: null,
    }),
  });
  await using user = await cliUser(login(platform.url));
  assert.match((await user.berth(["alerts"])).stdout, /critical +applications main\/shop/);
  assert.match((await user.berth(["alerts", "--all"])).stdout, /resolved +applications main\/shop/);
});

test("platform shows the totals, and of each machine what it has and what takes its disk", async () => {
  const count = {
    total: 2,
    suspended: 0,
    deleted: 0,
    serving: 1,
    ready: 2,
    failed: 0,
    succeeded: 1,
    in_progress: 0,
    size_bytes: 2048,
  };
  const share = { requested: 1024 ** 3, available: 8 * 1024 ** 3 };
  await using platform = await startScriptedPlatform({
    "platform.overview": () => ({
      version: "0.1.0",
      commit: null,
      newer_version: null,
      status: "ok",
      open_alerts: 0,
      organizations: count,
      projects: count,
      replicas: 2,
      deployments_today: count,
      databases: count,
      backups: count,
      domains: count,
      cron_jobs: 3,
      capacity: { memory_bytes: share, cpus: { requested: 4, available: 2 } },
      last_drills: [],
      most_failing: [
        { organization: "main", project: "shop", errors: 5, crashes: 1, failed_deployments: 0, failed_cron_runs: 0 },
      ],
      slowest: [{ organization: "main", project: "shop", requests: 100, mean_ms: 25 }],
      machines: [
        {
          name: "host",
          roles: ["api", "edge"],
          version: "0.1.0",
          started_at: at,
          uptime_seconds: 60,
          seen_at: at,
          cpus: 2,
          memory_bytes: share.available,
          runtime: "process",
          network: "veth",
          isolation: ["seccomp"],
          missing: [],
          disk: {
            total_bytes: 1024 ** 4,
            available_bytes: 1024 ** 3,
            used_bytes: { databases: 1024 ** 2, logs: 0 },
            measured_at: at,
          },
        },
      ],
    }),
  });
  await using user = await cliUser(login(platform.url));
  const { stdout } = await user.berth(["platform"]);
  assert.match(stdout, /memory +1\.0 GiB requested, 8\.0 GiB available/);
  assert.match(stdout, /roles +api, edge\n/);
  assert.match(stdout, /data +databases 1\.0 MiB\n/);
  assert.match(stdout, /main\/shop +25 ms +100/);
});

test("platform metrics shows what each machine uses of what it has, and what the edges answered", async () => {
  await using platform = await startScriptedPlatform({
    "platform.metrics": () => ({
      ...{ range: "1h", bucket_seconds: 60, times: [at, at] },
      machines: [
        {
          ...{ name: "host", cpus: 4, memory_bytes: 2 ** 33, disk_bytes: 2 ** 40 },
          used: { cpus: [null, 1.5], memory_bytes: [null, 2 ** 30], disk_bytes: [null, 2 ** 30] },
        },
      ],
      edges: { requests: [3, 4], errors: [0, 1], bytes_out: [1024, 0] },
    }),
  });
  await using user = await cliUser(login(platform.url));
  const { stdout } = await user.berth(["platform", "metrics"]);
  assert.match(stdout, /host +processors  . +1\.50 of 4\n/);
  assert.match(stdout, /memory +. +1\.0 GiB of 8\.0 GiB\n/);
  assert.match(stdout, /requests +.. +7, 1 errors\n/);
});

test("of a project it shows what runs and what needs attention; --platform asks for the platform", async () => {
  const { id, slug, name, url } = sampleProject();
  const commit = { commit: "c".repeat(40), branch: "main", message: "Add cart" };
  const deployment = { id: "dep_1", number: 4, status: "active", ...commit, at } as const;
  const sentence = "Deployment #4 has crashed 46 times since 2026-01-02 03:04 UTC (exit code 1).";
  const health = sampleHealth({ state: "crashing", code: "crash_loop", sentence });
  const overview: Result<"overview.get">["projects"][number] = {
    ...{ id, slug, name, url, state: "active", active_deployment: deployment, last_deployment: deployment },
    ...{ replicas: { ready: 1, wanted: 2 }, last_hour: { requests: 12, errors: 1, parts: [] }, database: "ready" },
    ...{ last_backup: null, storage_bytes: null, database_bytes: null, images_bytes: null },
    ...{ attention: ["crashing", "backup_failed"], health },
  };
  const sums = { projects: 1, serving: 1, needing_attention: 1, requests_last_hour: 12, errors_last_hour: 3 };
  const totals = { ...sums, storage_bytes: 0, database_bytes: 0, images_bytes: 0, approvals_pending: 0, alerts: null };
  const replica = {
    replica: 0,
    deployment: 4,
    state: "up",
    since: at,
    restarts: 46,
    memory_bytes: null,
    cpus: null,
  } as const;
  await using platform = await startScriptedPlatform({
    "projects.get": () => sampleProject({ maintenance: { since: at, message: "Back soon" }, health }),
    "overview.get": () => ({
      organization: { slug: "main", name: "Main", max_projects: 10 },
      totals,
      projects: [overview],
      previews: [],
    }),
    "processes.list": () => ({
      processes: [{ type: "web", command: "node .", replicas: 2, overlap: true, running: [replica] }],
    }),
    "status.get": () => sampleStatus("ok"),
  });
  await using user = await cliUser(login(platform.url));
  const { exitCode, stdout, stderr } = await user.berth(["status", "-p", slug]);
  assert.equal(exitCode, 0, stderr);
  for (const shown of [
    /#4, since/,
    /health +crashing: .*46 times/,
    /Back soon/,
    /web +1\/2 +46/,
    /12 requests, 1 error$/m,
  ])
    assert.match(stdout, shown);
  assert.match(stdout, /attention +backup failed:/);
  assert.match((await user.berth(["status", "-p", slug, "--platform"])).stdout, /The platform: ok/);
});
