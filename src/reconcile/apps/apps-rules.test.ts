import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReplicaRow } from "../../features/replicas/replicas.ts";
import type { Instance } from "../../ports/runtime.ts";
import { crashOf, desiredReplicas, isForGood, nextAction, replicaToRestart } from "./apps-rules.ts";

const state = (
  status: string,
  more: { deleted_at?: string; suspended_at?: string; sleep?: "asleep" | "waking" } = {},
) => ({
  status,
  deleted_at: more.deleted_at ?? null,
  suspended_at: more.suspended_at ?? null,
  sleep: more.sleep ?? null,
});

test("only what a deployment can not come back from is for good: a deletion and a suspension may be taken back", () => {
  const dates = { deleted_at: "2026-01-01T00:00:00Z", suspended_at: "2026-01-01T00:00:00Z" };
  const forGood = ["pending", "starting", "active", "retired", "failed", "superseded"].filter((status) =>
    isForGood(state(status, dates)),
  );
  assert.deepEqual(forGood, ["retired", "failed", "superseded"]);
  assert.equal(isForGood(undefined), true);
});

const now = new Date("2026-01-01T00:00:00Z");

function instance(how: "running" | "exited", attempt = 1, ranSeconds = 1): Instance {
  const started_at = new Date(now.getTime() - ranSeconds * 1000);
  const base = { workload_id: "dep_1", ordinal: 0, attempt, project_id: "prj_1", image_ref: "sha256:0", started_at };
  const more = { ...base, output_mark: "" };
  if (how === "running") return { ...more, state: "running", address: { host: "10.0.0.1", port: 80 }, exit: null };
  return { ...more, state: "exited", address: null, exit: { code: 1, out_of_memory: false, at: now } };
}

const row = (more: Partial<ReplicaRow>): ReplicaRow => ({
  ...{ ordinal: 0, attempt: 1, state: "running", ready_attempt: 0, restarts: 0, next_start_at: null },
  ...{ host: null, port: null, since: "2026-01-01T00:00:00Z" },
  ...more,
});

const actionOf = (...[known, found]: [ReplicaRow | undefined, Instance | undefined]) =>
  nextAction(known, found, now).action;

test("an active deployment serves, one on its way is the releases task's, nothing else runs", () => {
  const desired = (status: string, more = {}) =>
    desiredReplicas({ ...state(status, more), replicas: 2, yields: false });
  assert.deepEqual(
    ["pending", "starting"].map((status) => desired(status)),
    [undefined, undefined],
  );
  assert.equal(desired("active"), 2);
  assert.equal(desired("active", { deleted_at: now.toISOString() }), 0);
  assert.equal(desired("active", { suspended_at: now.toISOString() }), 0);
  assert.equal(desired("active", { sleep: "asleep" }), 0);
  assert.equal(desired("active", { sleep: "waking" }), 2);
  for (const status of ["retired", "failed", "superseded"]) assert.equal(desired(status), 0);
  assert.equal(desiredReplicas({ ...state("active"), replicas: 2, yields: true }), 0);
  assert.equal(desiredReplicas(undefined), 0);
});

test("a restart takes one replica at a time, and goes on only while those that it started are up", () => {
  const restart_at = "2026-01-01T00:01:00Z";
  const old = (ordinal: number) => row({ ordinal, ready_attempt: 1 });
  const fresh = (ordinal: number, more = {}) =>
    row({ ordinal, ready_attempt: 1, since: "2026-01-01T00:02:00Z", ...more });
  const next = (replica_rows: ReplicaRow[], replicas = 2) => replicaToRestart({ replicas, restart_at, replica_rows });
  assert.equal(next([old(0), old(1)]), 0);
  assert.equal(next([fresh(0, { ready_attempt: 0 }), old(1)]), undefined);
  assert.equal(next([fresh(0, { state: "exited" }), old(1)]), undefined);
  assert.equal(next([fresh(0), old(1)]), 1);
  assert.equal(next([fresh(0), fresh(1), old(2)]), undefined);
  assert.equal(replicaToRestart({ replicas: 2, restart_at: null, replica_rows: [old(0)] }), undefined);
});

test("what never ran, was stopped, or was about to start is started", () => {
  assert.equal(actionOf(undefined, undefined), "start");
  assert.equal(actionOf(row({ state: "stopped" }), undefined), "start");
  assert.equal(actionOf(row({ state: "starting", attempt: 2 }), undefined), "start");
  assert.equal(actionOf(row({ state: "starting", attempt: 2 }), instance("exited", 1)), "start");
});

test("a running instance that its row does not know of is adopted", () => {
  assert.equal(actionOf(undefined, instance("running")), "adopt");
  assert.equal(actionOf(row({ state: "starting" }), instance("running")), "adopt");
  assert.equal(actionOf(row({ state: "exited" }), instance("running")), "adopt");
  assert.equal(actionOf(row({ state: "running", attempt: 1 }), instance("running", 4)), "adopt");
});

test("a running replica is probed until it is ready, and then left alone", () => {
  assert.equal(actionOf(row({}), instance("running")), "probe");
  assert.equal(actionOf(row({ ready_attempt: 1 }), instance("running")), "none");
});

test("one that ended, or is gone without a trace, has crashed; of an end that is known only the next start is due", () => {
  assert.equal(actionOf(row({ ready_attempt: 1 }), instance("exited")), "crashed");
  assert.equal(actionOf(row({ ready_attempt: 1 }), undefined), "crashed");
  assert.equal(actionOf(row({ ready_attempt: 2, attempt: 2 }), instance("running", 1)), "crashed");
  const known = row({ state: "exited", next_start_at: "2026-01-01T00:00:01.500Z" });
  assert.deepEqual(nextAction(known, instance("exited"), now), { action: "start", inMs: 1500 });
});

test("a replica that was to end and is wanted again is kept if it still runs", () => {
  assert.equal(actionOf(row({ state: "draining" }), instance("running")), "keep");
  assert.equal(actionOf(row({ state: "draining" }), undefined), "crashed");
});

test("pauses between restarts double from one second to a minute, and begin anew after a steady minute", () => {
  const pauses = [0, 1, 2, 3, 5, 6, 20].map((restarts) => crashOf({ restarts }, instance("exited")).pauseMs);
  assert.deepEqual(pauses, [1000, 2000, 4000, 8000, 32_000, 60_000, 60_000]);
  assert.equal(crashOf({ restarts: 6 }, instance("exited", 1, 61)).pauseMs, 1000);
  assert.equal(crashOf({ restarts: 1 }, undefined).pauseMs, 2000);
});

test("a replica that is lost with its machine, or stopped with it, starts at once, and did not crash", () => {
  const { exit, ...given } = instance("exited");
  assert.ok(exit);
  for (const why of [{ machine_lost: true }, { stopped: true }] as const) {
    const { restarts, pauseMs } = crashOf({ restarts: 3 }, { ...given, exit: { ...exit, ...why } });
    assert.deepEqual([restarts, pauseMs], [3, 0]);
  }
});
