import assert from "node:assert/strict";
import { test } from "node:test";
import { clusterLabel, clusterMarkers } from "./cluster-markers.ts";

const widths = { chart: 400, label: 40 };

const clustered = (...places: readonly (readonly [number: number, at: number])[]) =>
  clusterMarkers(
    places.map(([number, at]) => ({ number, at })),
    ({ at }) => at,
    widths,
  );

test("deployments that lie close to each other share a label", () => {
  const clusters = clustered([4, 200], [1, 0], [2, 10], [3, 39], [5, 239], [6, 240]);
  assert.deepEqual(clusters.map(clusterLabel), ["#1–3", "#4–5", "#6"]);
  assert.deepEqual([clusters[0]?.from, clusters[0]?.to], [0, 39]);
});

test("labels never overlap and never leave the chart, and a chart shows what lies in it", () => {
  for (let step = 1; step < 60; step += 1) {
    const places = Array.from({ length: 80 }, (_, at) => [at + 1, at * step - 30] as const);
    const clusters = clustered(...places);
    for (const [index, { label }] of clusters.entries()) {
      assert.ok(label >= 0 && label + widths.label <= widths.chart, `${label}`);
      assert.ok(label - (clusters[index - 1]?.label ?? -widths.label) >= widths.label, `${label}`);
    }
    const shown = clusters.flatMap(({ markers }) => markers.map(({ number }) => number));
    assert.deepEqual(
      shown,
      places.filter(([, at]) => at >= 0 && at <= widths.chart).map(([number]) => number),
    );
  }
});

test("the label of deployments with others between them is their number", () => {
  assert.deepEqual(clustered([1, 0], [3, 5], [9, 6]).map(clusterLabel), ["3 deploys"]);
});
