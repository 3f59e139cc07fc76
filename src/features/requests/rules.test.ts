import assert from "node:assert/strict";
import { test } from "node:test";
import type { StoredRequest } from "../../ports/log-store.ts";
import { createPathTable, foldPath, otherPaths, requestFilter } from "./rules.ts";

const request = (path: string, more: Partial<StoredRequest> = {}): StoredRequest => ({
  ...{ at: "2026-01-01T00:00:00.000Z", method: "GET", path, status: 200, ms: 10, bytes: 1 },
  ...{ deployment: 1, replica: 0, request_id: null, weight: 1, ...more },
});

test("numbers, UUIDs, hashes, random words and addresses in a path are ids; names and files are not", () => {
  for (const [path, folded] of [
    ["/", "/"],
    ["/users/42/orders/7", "/users/:id/orders/:id"],
    ["/u/3f2504e0-4f89-11d3-9a0c-0305e82c3301", "/u/:id"],
    ["/commit/8d69fdb1", "/commit/:id"],
    ["/s/prj_01m8ec8ky1fretfew2f1", "/s/:id"],
    ["/reset/ann%40example.org", "/reset/:id"],
    ["/reset/x-Q9vR_2kLmN0pTz", "/reset/:id"],
    ["/blog/2026-01-31-in-review", "/blog/2026-01-31-in-review"],
    ["/v1/projects/demo", "/v1/projects/demo"],
    ["/assets/app.3f2504e0.js", "/assets/app.3f2504e0.js"],
    ["/api/v2/oauth2/callback", "/api/v2/oauth2/callback"],
    ["/a/b/c/d/e/f/g/h/i/j", "/a/b/c/d/e/f/g/h/…"],
  ] as const)
    assert.equal(foldPath(path), folded);
});

test("a path's numbers are weighted: a request that stands for ten counts as ten", () => {
  const table = createPathTable();
  for (let ms = 1; ms <= 90; ms += 1) table.add(request(`/items/${ms}`, { ms }));
  table.add(request("/items/5", { ms: 5000, status: 503, weight: 10, at: "2025-12-31T00:00:00.000Z" }));
  table.add(request("/items/5", { method: "POST", status: 500 }));
  const { paths, ...rest } = table.result("count", 10);
  assert.deepEqual(rest, { from: "2025-12-31T00:00:00.000Z", requests: 101, sampled: true });
  assert.deepEqual(paths, [
    { method: "GET", path: "/items/:id", count: 100, p50_ms: 50, p95_ms: 5000, errors: 10 },
    { method: "POST", path: "/items/:id", count: 1, p50_ms: 10, p95_ms: 10, errors: 1 },
  ]);
  assert.equal(table.result("errors", 1).paths.length, 1);
  const sampled = createPathTable();
  for (const weight of [1, 2]) {
    sampled.add(request("/", { weight }));
    assert.equal(sampled.result("count", 1).sampled, weight === 2);
  }
});

test("a visitor who invents paths adds one row", () => {
  const table = createPathTable(3);
  for (const name of ["a", "b", "c", "d", "e", "a"]) table.add(request(`/${name}`));
  const { paths } = table.result("count", 10);
  assert.deepEqual(
    paths.map(({ path, count }) => [path, count]),
    [
      ["/a", 2],
      [otherPaths, 2],
      ["/b", 1],
      ["/c", 1],
    ],
  );
});

test("filters are combined; a path's text may name its folded form", () => {
  const matches = (filters: Parameters<typeof requestFilter>[0], one: StoredRequest) => requestFilter(filters)(one);
  const slow = request("/Users/42", { status: 503, ms: 900 });
  for (const filters of [
    {},
    { path: "users/:id" },
    { path: "/users" },
    { status: "5xx" },
    { status: "503" },
    { slow_ms: 900 },
  ])
    assert.ok(matches(filters, slow), JSON.stringify(filters));
  for (const filters of [{ path: "orders" }, { status: "4xx" }, { status: "500" }, { slow_ms: 901 }])
    assert.ok(!matches(filters, slow), JSON.stringify(filters));
});
