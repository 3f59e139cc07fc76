import assert from "node:assert/strict";
import { test } from "node:test";
import { createSignal } from "./signal.ts";
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

test("a notify ends the wait; one while nobody waited is not lost, and counts once", async () => {
  const source = wakeups();
  const wakeup = createSignal(source, ["outcomes"]);
  source.tell("x");
  assert.equal(await wakeup.wait(long), true);
  assert.equal(await wakeup.wait(1), false);
  const waiting = wakeup.wait(long);
  source.tell("y");
  assert.equal(await waiting, true);
});

test("a signal for one thing does not notify for another, but when everything is to be looked at", async () => {
  const source = wakeups();
  const wakeup = createSignal(source, ["outcomes"], "mine");
  source.tell("other");
  assert.equal(await wakeup.wait(1), false);
  source.tell("mine");
  assert.equal(await wakeup.wait(long), true);
  source.tell("");
  assert.equal(await wakeup.wait(long), true);
});

test("a signal ends the wait, also one that has aborted before", async () => {
  const wakeup = createSignal(wakeups(), ["outcomes"]);
  const end = new AbortController();
  const waiting = wakeup.wait(long, end.signal);
  end.abort();
  assert.equal(await waiting, false);
  assert.equal(await wakeup.wait(long, end.signal), false);
});

test("a stopped signal no longer listens", () => {
  const source = wakeups();
  createSignal(source, ["outcomes", "approvals"]).stop();
  assert.equal(source.listeners.size, 0);
});
