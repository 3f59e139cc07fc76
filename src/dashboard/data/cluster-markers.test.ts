import assert from "node:assert/strict";
import { test } from "node:test";
import { clusterLabel, clusterMarkers } from "./cluster-markers.ts";

const clustered = (...places: readonly (readonly [number: number, at: number])[]) =>
  clusterMarkers(
    places.map(([number, at]) => ({ number, at })),
    ({ at }) => at,
    40,
  );

test("deployments that lie close to each other share a label, and no group is wider than a label", () => {
  const clusters = clustered([4, 200], [1, 0], [2, 10], [3, 39], [5, 239], [6, 240]);
  assert.deepEqual(clusters.map(clusterLabel), ["#1–3", "#4–5", "#6"]);
  assert.deepEqual([clusters[0]?.from, clusters[0]?.to], [0, 39]);
});

test("the label of deployments with others between them is their number", () => {
  assert.deepEqual(clustered([1, 0], [3, 5], [9, 6]).map(clusterLabel), ["3 deploys"]);
});
