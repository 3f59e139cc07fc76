import assert from "node:assert/strict";
import { test } from "node:test";
import type { Instance } from "../../ports/runtime.ts";
import { isForGood, msUntilStart, newCrash, wanted } from "./apps-rules.ts";

const standing = (status: string, more: { deleted_at?: string; suspended_at?: string } = {}) => ({
  status,
  deleted_at: more.deleted_at ?? null,
  suspended_at: more.suspended_at ?? null,
});

test("only what a deployment can not come back from is for good: a deletion and a suspension may be taken back", () => {
  const dates = { deleted_at: "2026-01-01T00:00:00Z", suspended_at: "2026-01-01T00:00:00Z" };
  const forGood = ["pending", "starting", "active", "retired", "failed", "superseded"].filter((status) =>
    isForGood(standing(status, dates)),
  );
  assert.deepEqual(forGood, ["retired", "failed", "superseded"]);
  assert.equal(isForGood(undefined), true);
});

function exited(ranSeconds: number, attempt = 1): Instance {
  const started = new Date("2026-01-01T00:00:00Z");
  return {
    workload_id: "dep_1",
    ordinal: 0,
    attempt,
    project_id: "prj_1",
    image_ref: "sha256:0",
    state: "exited",
    address: null,
    started_at: started,
    exit: { code: 1, out_of_memory: false, at: new Date(started.getTime() + ranSeconds * 1000) },
  };
}

const known = (restarts: number, crashed_attempt: number, next_start_at: string | null = null) => ({
  ordinal: 0,
  ready_attempt: 0,
  crashed_attempt,
  restarts,
  next_start_at,
});

test("an active deployment serves, a retired one drains, one on its way is left alone, the rest stops", () => {
  assert.equal(wanted(standing("active")), "serve");
  assert.equal(wanted(standing("retired")), "drain");
  assert.equal(wanted(standing("pending")), "leave");
  assert.equal(wanted(standing("starting")), "leave");
  assert.equal(wanted(standing("failed")), "stop");
  assert.equal(wanted(standing("superseded")), "stop");
  assert.equal(wanted(undefined), "stop");
});

test("the active deployment of a deleted project or a suspended organization drains", () => {
  assert.equal(wanted(standing("active", { deleted_at: "2026-01-01T00:00:00.000Z" })), "drain");
  assert.equal(wanted(standing("active", { suspended_at: "2026-01-01T00:00:00.000Z" })), "drain");
});

test("pauses between restarts double from one second to a minute", () => {
  const pauses = [0, 1, 2, 3, 5, 6, 20].map((restarts) => newCrash(exited(1, 9), known(restarts, 8))?.pauseMs);
  assert.deepEqual(pauses, [1000, 2000, 4000, 8000, 32_000, 60_000, 60_000]);
});

test("after a steady minute the pauses begin anew", () => {
  assert.equal(newCrash(exited(61, 9), known(6, 8))?.pauseMs, 1000);
});

test("one end of a replica counts once", () => {
  assert.equal(newCrash(exited(1, 3), known(2, 3)), undefined);
  assert.notEqual(newCrash(exited(1, 4), known(2, 3)), undefined);
});

test("a replica that was never seen to crash may start at once", () => {
  assert.equal(msUntilStart(undefined, new Date()), 0);
  assert.equal(msUntilStart(known(1, 1, "2026-01-01T00:00:02.000Z"), new Date("2026-01-01T00:00:00.500Z")), 1500);
});
