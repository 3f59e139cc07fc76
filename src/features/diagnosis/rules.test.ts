import assert from "node:assert/strict";
import { test } from "node:test";
import {
  sampleBuild,
  sampleDeployment,
  sampleDomain,
  sampleFailure,
  sampleHealth,
  sampleProject,
} from "../../../test/support/contract-samples.ts";
import { groups } from "../../mcp/groups.ts";
import { argumentsOf } from "../../mcp/input-schema.ts";
import { toolCallFor } from "../../mcp/in-tool-words.ts";
import { route, type RouteName } from "../../contract/routes.ts";
import { diagnosis, type ProjectState } from "./rules.ts";

const active = sampleProject({
  active_deployment: {
    id: "dep_1",
    number: 1,
    status: "active",
    commit: null,
    activated_at: "2026-01-02T03:00:00.000Z",
  },
  health: sampleHealth({ state: "healthy", code: "healthy" }),
});
const nothing: ProjectState = {
  project: active,
  deployments: { deployments: [sampleDeployment()], next_cursor: null },
  builds: { builds: [sampleBuild()], next_cursor: null },
  domains: { domains: [] },
  cron: null,
  database: null,
  backups: null,
  archive: null,
  failing: null,
  pathsSince: "2026-01-01T00:00:00.000Z",
  slow: null,
};

const codes = (state: Partial<ProjectState>) =>
  diagnosis({ ...nothing, ...state }).map(({ code, severity }) => [severity, code]);

test("an archive that is behind is a notice", () => {
  const archive = { windows: [], gaps: [], stored_bytes: 0, retention_days: 7, reason: "The storage is away." };
  assert.deepEqual(codes({ archive: { ...archive, status: "healthy" } }), []);
  assert.deepEqual(codes({ archive: { ...archive, status: "behind" } }), [["notice", "archive_behind"]]);
});

test("a healthy project has no findings", () => {
  assert.deepEqual(codes({}), []);
});

test("a project without code and one whose first build failed are told apart", () => {
  const project = sampleProject();
  assert.deepEqual(
    codes({ project, builds: { builds: [], next_cursor: null }, deployments: { deployments: [], next_cursor: null } }),
    [["down", "nothing_deployed"]],
  );
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
  const [only, ...others] = diagnosis(state(2, 1));
  assert.deepEqual(others, []);
  assert.match(only?.sentence ?? "", /nothing is deployed yet/);
  assert.equal(diagnosis(state(1, 2)).length, 2);
});

test("the failure of the likeliest cause comes with it, for its hint to be read first", () => {
  const failure = sampleFailure({ hint: "Commit the lock file." });
  const [finding] = diagnosis({
    ...nothing,
    builds: { builds: [sampleBuild({ status: "failed", failure })], next_cursor: null },
  });
  assert.equal(finding?.failure?.hint, "Commit the lock file.");
});

test("the health is a finding, as severe as what visitors see of it", () => {
  const found = (more: Parameters<typeof sampleHealth>[0]) =>
    codes({ project: { ...active, health: sampleHealth(more) } });
  assert.deepEqual(found({ state: "crashing", code: "crash_loop", seen: { ready: 1 } }), [["broken", "crash_loop"]]);
  assert.deepEqual(found({ state: "crashing", code: "crash_loop", seen: { ready: 0 } }), [["down", "crash_loop"]]);
  assert.deepEqual(found({ state: "degraded", code: "slow" }), [["broken", "slow"]]);
  assert.deepEqual(found({ state: "maintenance", code: "maintenance" }), [["notice", "maintenance"]]);
});

test("a path is slow only if enough requests show it", () => {
  const path = { method: "GET", path: "/", count: 10, errors: 0, p50_ms: 1, p95_ms: 2000 };
  const found = (more: object) =>
    codes({ slow: { from: null, requests: 10, sampled: false, paths: [{ ...path, ...more }] } });
  assert.deepEqual(found({}), [["notice", "path_slow"]]);
  assert.deepEqual(found({ count: 9 }), []);
  assert.deepEqual(found({ p95_ms: 1999 }), []);
});

test("a failed release command leads to the build's log, an application that crashed to its own", () => {
  const next = (stage: "release" | "boot") =>
    diagnosis({
      ...nothing,
      deployments: {
        deployments: [sampleDeployment({ status: "failed", failure: sampleFailure({ stage }) })],
        next_cursor: null,
      },
    })[0]?.next?.route;
  assert.deepEqual([next("release"), next("boot")], ["builds.logs", "logs.list"]);
});

test("a hostname that leads elsewhere is told with the records to create", () => {
  const lost = sampleDomain({ dns_status: "mismatch" });
  const [finding] = diagnosis({ ...nothing, domains: { domains: [lost] } });
  assert.ok(finding?.code === "dns_mismatch");
  assert.deepEqual((finding.seen as { records: unknown }).records, lost.instructions.records);
  assert.ok(finding.sentence.startsWith(lost.hostname), finding.sentence);
});

test("a hostname without records to create is told with what the platform says of it", () => {
  const { instructions, ...domain } = sampleDomain();
  const unserved = { ...domain, instructions: { ...instructions, records: [], note: "No public address yet." } };
  const [finding] = diagnosis({ ...nothing, domains: { domains: [unserved] } });
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
    ["notice", "dns_pending"],
  ]);
});

test("every next step names a tool with an action that there is and arguments that it takes", () => {
  const failed = sampleDeployment({ status: "failed", failure: sampleFailure() });
  const states: Partial<ProjectState>[] = [
    {
      builds: { builds: [sampleBuild({ status: "failed" })], next_cursor: null },
      deployments: { deployments: [failed], next_cursor: null },
    },
    { domains: { domains: [sampleDomain(), sampleDomain({ dns_status: "ok", ssl_status: "failed" })] } },
  ];
  for (const { next } of states.flatMap((state) => diagnosis({ ...nothing, ...state }))) {
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
