import assert from "node:assert/strict";
import { test } from "node:test";
import { createBell } from "./bell.ts";
import type { WakeupListener } from "./wakeups.ts";

const long = 3_600_000;

function wakeups() {
  const listeners = new Set<WakeupListener>();
  return {
    listeners,
    on(_: string, listener: WakeupListener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    tell: (id: string) => listeners.forEach((listener) => listener(id)),
  };
}

test("a ring ends the wait; one while nobody waited is not lost, and counts once", async () => {
  const source = wakeups();
  const bell = createBell(source, ["outcomes"]);
  source.tell("x");
  assert.equal(await bell.wait(long), true);
  assert.equal(await bell.wait(1), false);
  const waiting = bell.wait(long);
  source.tell("y");
  assert.equal(await waiting, true);
});

test("a bell for one thing does not ring for another, but when everything is to be looked at", async () => {
  const source = wakeups();
  const bell = createBell(source, ["outcomes"], "mine");
  source.tell("other");
  assert.equal(await bell.wait(1), false);
  source.tell("mine");
  assert.equal(await bell.wait(long), true);
  source.tell("");
  assert.equal(await bell.wait(long), true);
});

test("a signal ends the wait, also one that has aborted before", async () => {
  const bell = createBell(wakeups(), ["outcomes"]);
  const end = new AbortController();
  const waiting = bell.wait(long, end.signal);
  end.abort();
  assert.equal(await waiting, false);
  assert.equal(await bell.wait(long, end.signal), false);
});

test("a stopped bell no longer listens", () => {
  const source = wakeups();
  createBell(source, ["outcomes", "approvals"]).stop();
  assert.equal(source.listeners.size, 0);
});
