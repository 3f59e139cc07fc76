import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import type { PlanOutcome, PlanRequest } from "../ports/builder.ts";
import { limitPlans, type PlanLimits } from "./limit-plans.ts";
import { planSource, type Planner } from "./plan-source.ts";

const limits: PlanLimits = { all: 3, perOwner: 2, waitingPerOwner: 4, waitMs: 3_600_000 };
const planned = { outcome: "planned" } as unknown as PlanOutcome;

/** A builder whose plans run until the test ends them. */
function slowBuilder(more: { limits?: PlanLimits; isShort?: boolean } = {}) {
  const underWay = new Map<string, () => void>();
  const plan = limitPlans(
    {
      plan: ({ project_id }) => new Promise<PlanOutcome>((resolve) => underWay.set(project_id, () => resolve(planned))),
    },
    { isShort: async () => more.isShort ?? false, limits: more.limits ?? limits },
  );
  const ask = (org_id: string, project_id: string, signal = new AbortController().signal) =>
    plan({ org_id, project_id, signal } as PlanRequest);
  const seen = async () => {
    await new Promise(setImmediate);
    return [...underWay.keys()];
  };
  const finish = (project: string) => {
    underWay.get(project)?.();
    underWay.delete(project);
  };
  return { ask, seen, finish };
}

function refusalOf(outcome: PlanOutcome) {
  assert.ok(outcome.outcome === "refused", JSON.stringify(outcome));
  return outcome.failure;
}

test("an organization with many slow plans leaves a place to the others, and a project has one", async () => {
  const { ask, seen, finish } = slowBuilder();
  void ask("acme", "shop");
  void ask("acme", "shop");
  void ask("acme", "blog");
  void ask("acme", "wiki");
  const other = ask("globex", "site");
  assert.deepEqual(await seen(), ["shop", "blog", "site"]);
  finish("site");
  assert.equal((await other).outcome, "planned");
  assert.deepEqual(await seen(), ["shop", "blog"]);
});

test("a plan that finds no place says so, and one whose caller has gone is cancelled", async () => {
  const { ask, seen, finish } = slowBuilder({ limits: { ...limits, all: 1, perOwner: 1, waitMs: 1 } });
  void ask("acme", "shop");
  await seen();
  const late = refusalOf(await ask("globex", "site"));
  assert.deepEqual([late.code, late.stage], ["build_timeout", "receive"]);
  assert.match(late.summary, /Too many plans are running/);
  assert.equal((await ask("globex", "site", AbortSignal.abort())).outcome, "cancelled");
  finish("shop");
  void ask("globex", "site");
  assert.deepEqual(await seen(), ["site"]);
});

test("no source is unpacked while the disk is short of space", async () => {
  const { ask, seen } = slowBuilder({ isShort: true });
  assert.equal(refusalOf(await ask("acme", "shop")).code, "storage_full");
  assert.deepEqual(await seen(), []);
});

test("a source that comes too slowly is a plan's failure with its reason, and leaves no files", async () => {
  const folder = await mkdtemp(join(tmpdir(), "berth-plans-"));
  const source = new PassThrough();
  const request = { org_id: "acme", project_id: "shop", source: () => source, signal: new AbortController().signal };
  const planner: Planner = {
    ...{ folder, maxSourceBytes: 1e6, timeoutMs: 1, nodeVersion: "24.0.0" },
    machineFor: async () => assert.fail("the source never came"),
    planOwn: async () => null,
  };
  const failure = refusalOf(await planSource(request, planner));
  assert.equal(failure.code, "build_timeout");
  assert.match(failure.summary, /took longer than/);
  assert.deepEqual(await readdir(folder), []);
  await rm(folder, { recursive: true });
});
