import assert from "node:assert/strict";
import { test } from "node:test";
import { plain } from "../../ports/edge-stage.suite.ts";
import type { Route, RouteTable } from "../../ports/edge.ts";
import { backendsToGrow, changePool, emptyPool, poolOf, versionOf, type RoutePool } from "./route-pool.ts";

const route = (hostname: string, ports: number[], more: Partial<Route> = {}): Route => ({
  hostname,
  project_id: `prj_${hostname}`,
  state: "serving",
  targets: ports.map((port) => ({ host: "127.0.0.1", port })),
  ...plain,
  https: "on",
  ...more,
});
const table = (version: number, ...routes: Route[]): RouteTable => ({ version, routes, challenge: null });
const change = (pool: RoutePool, to: RouteTable, busy: string[] = []) => {
  const made = changePool(pool, to, new Set(busy));
  assert.ok(made !== undefined);
  return made;
};

test("a new host gets a backend of the pool: its server is ready before the host is known", () => {
  const { commands, next } = change(emptyPool(4), table(7, route("one.test", [81])));
  assert.deepEqual(commands, [
    "add server b1/s1 127.0.0.1:81",
    "set server b1/s1 state ready",
    "set map hosts.map :version 7",
    "add map hosts.map one.test b1/-//prj_one.test",
  ]);
  assert.equal(versionOf(next), 7);
});

test("a switch opens the new replica first and closes the old one last", () => {
  const { next } = change(emptyPool(4), table(1, route("one.test", [81])));
  assert.deepEqual(change(next, table(2, route("one.test", [82]))).commands, [
    "add server b1/s2 127.0.0.1:82",
    "set server b1/s2 state ready",
    "set map hosts.map :version 2",
    "set server b1/s1 state maint",
  ]);
});

test("a closed server gets another target only once nothing is open to it", () => {
  const first = change(emptyPool(4), table(1, route("one.test", [81]))).next;
  const second = change(first, table(2, route("one.test", [82]))).next;
  const third = table(3, route("one.test", [83]));
  assert.match(change(second, third).commands[0] as string, /^set server b1\/s1 addr 127\.0\.0\.1 port 83$/);
  assert.match(change(second, third, ["b1/s1"]).commands[0] as string, /^add server b1\/s3 127\.0\.0\.1:83$/);
});

test("a table that changes nothing moves its version alone", () => {
  const { next } = change(emptyPool(4), table(1, route("one.test", [81]), route("two.test", [82])));
  const again = table(2, route("one.test", [81]), route("two.test", [82]));
  assert.deepEqual(change(next, again).commands, ["set map hosts.map :version 2"]);
});

test("the host map says what is not served, and how HTTPS is", () => {
  const { next } = change(
    emptyPool(9),
    table(
      1,
      route("a.test", [], { state: "empty" }),
      route("b.test", []),
      route("c.test", [81], { https: "redirect", hsts: true }),
    ),
  );
  assert.deepEqual(
    ["a.test", "b.test", "c.test"].map((host) => next.hosts.get(host)),
    [
      "pages/-/nothing_deployed/prj_a.test////b1/prj_a.test",
      "pages/-/app_not_running/prj_b.test////b2/prj_b.test",
      "b3/RH//prj_c.test",
    ],
  );
});

test("a worker's host map says which backend a project has, whatever answers for it, also in the form of earlier versions", () => {
  const { next } = change(
    emptyPool(9),
    table(
      1,
      route("a.test", [], { state: "maintenance", notice: "Back / soon" }),
      route("b.test", [], { state: "deleted" }),
      route("c.test", [81]),
    ),
  );
  assert.deepEqual(poolOf(9, next.hosts, next.servers).backends, next.backends);
  const earlier = new Map([["a.test", "b4/-/maintenance/prj_a/PGI-/e30/YQ"]]);
  assert.deepEqual([...poolOf(9, earlier, new Map()).backends], [["prj_a", "b4"]]);
});

test("hosts of one project share a backend; more projects than backends ask for a larger pool", () => {
  const shared = { project_id: "prj_same" };
  const { next } = change(emptyPool(1), table(1, route("a.test", [81], shared), route("b.test", [81], shared)));
  assert.deepEqual([next.hosts.get("a.test"), next.hosts.get("b.test")], ["b1/-//prj_same", "b1/-//prj_same"]);
  assert.equal(changePool(next, table(2, route("a.test", [81]), route("b.test", [82])), new Set()), undefined);
});

test("only backends that get a further server must be asked for one that is free", () => {
  const { next } = change(emptyPool(4), table(1, route("one.test", [81]), route("two.test", [82])));
  const moved = change(next, table(2, route("one.test", [83]), route("two.test", [82])));
  assert.deepEqual(backendsToGrow(moved.commands), ["b1"]);
  const closed = change(moved.next, table(3, route("one.test", [83]), route("two.test", [])));
  assert.deepEqual(backendsToGrow(closed.commands), []);
});
