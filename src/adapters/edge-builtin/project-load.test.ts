import assert from "node:assert/strict";
import { setImmediate as nextTurn } from "node:timers/promises";
import { test } from "node:test";
import { eventually } from "../../../test/support/eventually.ts";
import { ProjectLoad } from "./project-load.ts";

/** Counts how many of `count` waiting requests a load has let through, and the most in one turn of the event loop. */
function counted(count: number, letGo: (go: () => void) => void) {
  const seen = { total: 0, inOneTurn: 0 };
  let thisTurn = 0;
  const go = () => {
    seen.total += 1;
    seen.inOneTurn = Math.max(seen.inOneTurn, (thisTurn += 1));
    void nextTurn().then(() => (thisTurn = 0));
  };
  for (let i = 0; i < count; i += 1) letGo(go);
  return seen;
}

test("bodies that have used up their project's share go on one a turn, also when a late clock makes all of them due", async () => {
  let now = 1000;
  const load = new ProjectLoad(() => now);
  const resumed = counted(8, (go) => load.spend(64, go));
  assert.equal(resumed.total, 0);
  now += 60_000;
  await eventually(() => resumed.total === 8, "all bodies go on");
  assert.equal(resumed.inOneTurn, 1);
});

test("a project's new requests start one a turn while many of its bodies wait for their share, and all do start", async () => {
  const load = new ProjectLoad(() => 1000);
  assert.equal(counted(5, (go) => load.start(go)).total, 5, "nothing waits yet");
  for (let body = 0; body < 8; body += 1) load.spend(64, () => {});
  const started = counted(5, (go) => load.start(go));
  assert.equal(started.total, 0);
  assert.equal(counted(5, (go) => new ProjectLoad(() => 1000).start(go)).total, 5, "another project's start at once");
  await eventually(() => started.total === 5, "all requests start");
  assert.equal(started.inOneTurn, 1);
});

test("a single body of very small chunks delays no request of its project", () => {
  const load = new ProjectLoad(() => 1000);
  load.spend(10_000, () => {});
  assert.equal(counted(5, (go) => load.start(go)).total, 5);
});
