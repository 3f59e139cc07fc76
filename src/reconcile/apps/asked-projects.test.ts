import assert from "node:assert/strict";
import { test } from "node:test";
import type { EdgeUsage } from "../../ports/edge.ts";
import { createAskedProjects } from "./asked-projects.ts";

/** An edge that has refused this many requests of these projects, split over two counters. */
function edgeWith(refused: Record<string, number>) {
  const usage = (counter: string, project_id: string, count: number): EdgeUsage => ({
    ...{ counter, project_id, requests: count + 5, by_class: { "2": 5, "5": count } },
    ...{ bytes_in: 0, bytes_out: 0, latency_buckets: [], latency_sum_ms: 0 },
  });
  return {
    measure: async () =>
      Object.entries(refused).flatMap(([project, count]) => [
        usage("old", project, 1),
        usage("new", project, count - 1),
      ]),
  };
}

const order = async (asked: ReturnType<typeof createAskedProjects>) =>
  (await asked.first(["a", "b", "c", "d"], (project) => project)).join("");

test("after a cold start the projects whose visitors were refused start first, and keep their order otherwise", async () => {
  const refused: Record<string, number> = { c: 3, b: 0 };
  const asked = createAskedProjects(edgeWith(refused));
  assert.equal(await order(asked), "cabd");
  refused["d"] = 1;
  assert.equal(await order(asked), "cdab", "also those asked for later");
});

test("an edge that cannot be read changes nothing of the order", async () => {
  const asked = createAskedProjects({ measure: () => Promise.reject(new Error("no edge")) });
  assert.equal(await order(asked), "abcd");
});
