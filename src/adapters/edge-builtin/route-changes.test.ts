import assert from "node:assert/strict";
import { test } from "node:test";
import type { Route } from "../../ports/edge.ts";
import { LiveRoutes } from "./live-routes.ts";
import { byName, compareRoutes } from "./route-changes.ts";
import { UsageBook } from "./usage.ts";

const route = (hostname: string, port = 3000): Route => ({
  ...{ hostname, project_id: `prj_${hostname}`, state: "serving", https: "off", hsts: false },
  targets: [{ host: "127.0.0.1", port }],
});
const portsOf = (live: LiveRoutes, hostname: string) => live.find(hostname)?.targets.map(({ key }) => key);

test("only routes that were added, changed or removed differ", () => {
  const kept = route("kept.test");
  const before = byName([kept, route("same.test"), route("moved.test"), route("gone.test")]);
  const after = byName([kept, route("same.test"), route("moved.test", 3001), route("new.test")]);
  const { changed, removed } = compareRoutes(before, after);
  assert.deepEqual(
    changed.map(({ hostname }) => hostname),
    ["moved.test", "new.test"],
  );
  assert.deepEqual(removed, ["gone.test"]);
});

test("changes are put in force on the version they were made for, and on no other", () => {
  const live = new LiveRoutes(new UsageBook());
  live.apply({ version: 1, routes: [route("a.test"), route("b.test"), route("c.test")], challenge: null });
  const changes = { changed: [route("a.test", 3001)], removed: ["b.test"] };
  assert.equal(live.change({ from: 0, version: 2, ...changes }), 1);
  assert.deepEqual(portsOf(live, "a.test"), ["127.0.0.1:3000"]);
  assert.equal(live.change({ from: 1, version: 2, ...changes }), 2);
  assert.deepEqual(portsOf(live, "a.test"), ["127.0.0.1:3001"]);
  assert.equal(live.find("b.test"), undefined);
  assert.deepEqual(portsOf(live, "c.test"), ["127.0.0.1:3000"]);
  assert.equal(live.change({ from: 2, version: 3, changed: [], removed: [] }), 3);
});

test("a replica is retired once no route names it, by a change as by a whole table, and serves again when one does", () => {
  const live = new LiveRoutes(new UsageBook());
  const challenge = { host: "127.0.0.1", port: 3009 };
  const targetOf = (hostname: string) => live.find(hostname)?.targets[0] ?? assert.fail();
  live.apply({ version: 1, routes: [route("a.test"), route("b.test"), route("c.test", 3009)], challenge });
  const [shared, challenged] = [targetOf("a.test"), targetOf("c.test")];
  live.change({ from: 1, version: 2, changed: [route("a.test", 3001), route("c.test", 3002)], removed: [] });
  assert.deepEqual([shared.retired, challenged.retired], [false, false], "another route and the challenge name them");
  live.change({ from: 2, version: 3, changed: [], removed: ["b.test"] });
  assert.equal(shared.retired, true);
  const left = targetOf("a.test");
  live.apply({ version: 4, routes: [route("b.test")], challenge: null });
  assert.deepEqual([targetOf("b.test") === shared, shared.retired], [true, false]);
  assert.deepEqual([left.retired, challenged.retired, live.find("a.test")], [true, true, undefined]);
});
