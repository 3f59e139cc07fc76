import assert from "node:assert/strict";
import { test } from "node:test";
import { plain } from "../../ports/edge-stage.suite.ts";
import type { Route, RouteTable } from "../../ports/edge.ts";
import {
  backendsToGrow,
  changePool,
  emptyPool,
  isOfThisForm,
  poolOf,
  versionOf,
  type RoutePool,
  serverWatch,
} from "./route-pool.ts";

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

test("a host of a project with one replica names it in the host map, which moves in one step", () => {
  const { commands, next } = change(emptyPool(0), table(7, route("one.test", [81])));
  assert.deepEqual(commands, [
    "set map hosts.map :version 7",
    "add map hosts.map one.test S---/prj_one.test/127.0.0.1/81",
  ]);
  assert.equal(versionOf(next), 7);
  assert.deepEqual(change(next, table(8, route("one.test", [82]))).commands, [
    "set map hosts.map :version 8",
    "set map hosts.map one.test S---/prj_one.test/127.0.0.1/82",
  ]);
});

test("a project with several replicas gets a backend of the pool: its servers are ready before the host is known", () => {
  const { commands } = change(emptyPool(4), table(7, route("one.test", [81, 82])));
  assert.deepEqual(commands, [
    `add server b1/s1 127.0.0.1:81 ${serverWatch}`,
    "enable health b1/s1",
    "set server b1/s1 state ready",
    `add server b1/s2 127.0.0.1:82 ${serverWatch}`,
    "enable health b1/s2",
    "set server b1/s2 state ready",
    "set map hosts.map :version 7",
    "add map hosts.map one.test B---/prj_one.test/b1",
  ]);
});

test("a name that redirects needs no replica and no backend, and plain requests are sent to the other name at once", () => {
  const redirect_to = { hostname: "two.test", https: true };
  const { commands } = change(emptyPool(0), table(7, route("one.test", [81, 82], { redirect_to, https: "redirect" })));
  assert.deepEqual(commands, [
    "set map hosts.map :version 7",
    "add map hosts.map one.test G---/prj_one.test/pages/moved/https/two.test",
  ]);
});

test("a switch opens the new replicas first and closes the old ones last", () => {
  const { next } = change(emptyPool(4), table(1, route("one.test", [81, 82])));
  assert.deepEqual(change(next, table(2, route("one.test", [82, 83]))).commands, [
    `add server b1/s3 127.0.0.1:83 ${serverWatch}`,
    "enable health b1/s3",
    "set server b1/s3 state ready",
    "set map hosts.map :version 2",
    "set server b1/s1 state maint",
  ]);
});

test("a project that is left with one replica keeps it in its former backend, for requests that were looked up before", () => {
  const { next } = change(emptyPool(1), table(1, route("one.test", [81, 82])));
  const alone = change(next, table(2, route("one.test", [82])));
  assert.deepEqual(alone.commands, [
    "set map hosts.map :version 2",
    "set map hosts.map one.test S---/prj_one.test/127.0.0.1/82",
    "set server b1/s1 state maint",
  ]);
  const other = table(3, route("one.test", [82]), route("two.test", [91, 92]));
  const taken = change(alone.next, other);
  assert.equal(taken.next.hosts.get("two.test"), "B---/prj_two.test/b1");
  assert.equal(taken.commands.at(-1), "set server b1/s2 state maint", "another project takes the place over");
  const atOnce = table(2, route("one.test", [82]), route("two.test", [91, 92]));
  assert.equal(changePool(next, atOnce, new Set()), undefined, "but never in the same step");
});

test("a replica that has a name instead of an address gets a backend, whose server HAProxy resolves", () => {
  const named = route("one.test", [81], { targets: [{ host: "localhost", port: 81 }] });
  assert.equal(change(emptyPool(1), table(1, named)).next.hosts.get("one.test"), "B---/prj_one.test/b1");
});

test("a replica without an address of its own is none: the kernel would dial this machine", () => {
  for (const host of ["0.0.0.0", "::"]) {
    const nowhere = route("one.test", [81], { targets: [{ host, port: 81 }] });
    const { next } = change(emptyPool(1), table(1, nowhere));
    assert.equal(next.hosts.get("one.test"), "G---/prj_one.test/pages/app_not_running");
  }
});

test("a closed server gets another target only once nothing is open to it", () => {
  const first = change(emptyPool(4), table(1, route("one.test", [80, 81]))).next;
  const second = change(first, table(2, route("one.test", [80, 82]))).next;
  const third = table(3, route("one.test", [80, 83]));
  assert.match(change(second, third).commands[0] as string, /^set server b1\/s2 addr 127\.0\.0\.1 port 83$/);
  assert.match(change(second, third, ["b1/s2"]).commands[0] as string, /^add server b1\/s4 127\.0\.0\.1:83 check /);
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
    ["G---/prj_a.test/pages/nothing_deployed", "G---/prj_b.test/pages/app_not_running", "SRH-/prj_c.test/127.0.0.1/81"],
  );
});

test("a worker's host map says which projects have a backend", () => {
  const { next } = change(
    emptyPool(9),
    table(
      1,
      route("a.test", [81, 82], { state: "maintenance", notice: "Back / soon" }),
      route("b.test", [81, 82]),
      route("c.test", [81]),
    ),
  );
  assert.deepEqual(poolOf(9, next.hosts, next.servers).backends, next.backends);
  assert.deepEqual([...next.backends], [["prj_b.test", "b1"]]);
});

test("a worker that an earlier version configured is known by its host map", () => {
  assert.ok(isOfThisForm(emptyPool(1)));
  assert.ok(
    !isOfThisForm(
      poolOf(
        1,
        new Map([
          [":version", "3"],
          ["a.test", "b1/-//prj_a"],
        ]),
        new Map(),
      ),
    ),
  );
});

test("hosts of one project share a backend; more projects with several replicas than backends ask for a larger pool", () => {
  const shared = { project_id: "prj_same" };
  const { next } = change(emptyPool(1), table(1, route("a.test", [81, 82], shared), route("b.test", [81, 82], shared)));
  assert.deepEqual([next.hosts.get("a.test"), next.hosts.get("b.test")], ["B---/prj_same/b1", "B---/prj_same/b1"]);
  const another = table(2, route("a.test", [81, 82], shared), route("b.test", [82, 83]));
  assert.equal(changePool(next, another, new Set()), undefined);
});

test("only backends that get a further server must be asked for one that is free", () => {
  const { next } = change(emptyPool(4), table(1, route("one.test", [80, 81]), route("two.test", [80, 82])));
  const moved = change(next, table(2, route("one.test", [80, 83]), route("two.test", [80, 82])));
  assert.deepEqual(backendsToGrow(moved.commands), ["b1"]);
  const closed = change(moved.next, table(3, route("one.test", [80, 83]), route("two.test", [])));
  assert.deepEqual(backendsToGrow(closed.commands), []);
});
