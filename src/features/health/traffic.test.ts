import assert from "node:assert/strict";
import { test } from "node:test";
import { latencyBucketsMs } from "../../ports/edge.ts";
import { sampleMs, troubleOf, type Live, type TrafficSample } from "./traffic.ts";

const now = new Date("2026-01-02T04:00:00.000Z");
const ago = (seconds: number) => new Date(now.getTime() - seconds * 1000).toISOString();

interface Part {
  readonly requests: number;
  readonly errors?: number;
  /** How many take so long, in milliseconds; the others take 3. */
  readonly slow?: readonly [count: number, ms: number];
}

function sample(secondsAgo: number, { requests, errors = 0, slow: [count, ms] = [0, 3] }: Part): TrafficSample {
  const latencies = Array.from({ length: latencyBucketsMs.length + 1 }, () => 0);
  const indexOf = (wanted: number) => latencyBucketsMs.findIndex((bound) => bound >= wanted);
  latencies[indexOf(3)] = requests - count;
  latencies[indexOf(ms)] = (latencies[indexOf(ms)] ?? 0) + count;
  return { at: ago(secondsAgo), requests, errors, latencies };
}

/** The same part in each of so many samples, the last one so many seconds ago. */
function run(from: number, to: number, part: Part): TrafficSample[] {
  const samples: TrafficSample[] = [];
  for (let at = from; at > to; at -= sampleMs / 1000) samples.push(sample(at, part));
  return samples;
}

const live = (...all: readonly [number: number, secondsAgo: number][]): Live[] =>
  all.map(([number, secondsAgo]) => ({ number, activated_at: ago(secondsAgo) }));

test("good requests are no trouble, and neither are some errors among many", () => {
  assert.equal(troubleOf(run(3000, 0, { requests: 30 }), live([1, 4000]), now), null);
  assert.equal(troubleOf(run(3000, 0, { requests: 300, errors: 1 }), live([1, 4000]), now), null);
});

test("60 of 60 failed requests after 1,560 good ones are found, with the deployment that came in between", () => {
  const samples = [...run(3600, 60, { requests: 7 }), sample(38, { requests: 60, errors: 60 })];
  const found = troubleOf(samples, live([1, 4000], [2, 40]), now);
  assert.deepEqual([found?.kind, found?.bad, found?.requests, found?.deployment], ["errors", 60, 60, 2]);
  assert.equal(found?.before.bad, 0);
});

test("a deployment that went live within the first bad sample is the guilty one, not the one before", () => {
  const samples = [
    ...run(3600, 60, { requests: 20 }),
    sample(60, { requests: 20, errors: 12 }),
    sample(45, { requests: 20, errors: 20 }),
  ];
  assert.equal(troubleOf(samples, live([6, 4000], [7, 53]), now)?.deployment, 7);
});

test("single errors before are not the beginning of a total failure", () => {
  const samples = [...run(3600, 15, { requests: 20, errors: 1 }), sample(10, { requests: 20, errors: 20 })];
  const found = troubleOf(samples, live([1, 9000], [2, 300]), now);
  assert.deepEqual([found?.since, found?.deployment], [ago(10), 2]);
});

test("errors that a later deployment ended are not told, and a total failure of a rare path among many good requests is", () => {
  const mended = [...run(1200, 1000, { requests: 60, errors: 60 }), ...run(1000, 0, { requests: 20 })];
  assert.equal(troubleOf(mended, live([1, 1300], [2, 1000]), now), null);
  const rare = [...run(3600, 300, { requests: 1000 }), ...run(300, 0, { requests: 1000, errors: 15 })];
  assert.deepEqual(troubleOf(rare, live([1, 9000]), now)?.kind, "errors");
});

test("the first bad deployment is named, not the restart that changed nothing", () => {
  const samples = [...run(3600, 400, { requests: 20 }), ...run(390, 0, { requests: 20, errors: 20 })];
  const found = troubleOf(samples, live([1, 9000], [2, 395], [3, 120]), now);
  assert.deepEqual([found?.deployment, found?.active], [2, 3]);
});

test("a path that slows down from 3 to 560 ms is found with its deployment, and one that was as slow before is not", () => {
  const slowed = [...run(3600, 120, { requests: 20 }), ...run(105, 0, { requests: 20, slow: [5, 560] })];
  const found = troubleOf(slowed, live([4, 9000], [5, 110]), now);
  assert.deepEqual([found?.kind, found?.over_ms, found?.deployment, found?.before.bad], ["slow", 200, 5, 0]);
  assert.equal(troubleOf(run(3600, 0, { requests: 20, slow: [5, 560] }), live([4, 9000]), now), null);
});

test("without an hour before, only what takes two seconds is slow", () => {
  assert.equal(troubleOf(run(100, 0, { requests: 20, slow: [5, 560] }), live([1, 110]), now), null);
  assert.equal(troubleOf(run(100, 0, { requests: 20, slow: [5, 4000] }), live([1, 110]), now)?.over_ms, 2000);
});
