import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { linkSignals } from "./link-signals.ts";

test("aborts with any of its sources, with that one's reason, also when it comes too late to see it", () => {
  const [one, other] = [new AbortController(), new AbortController()];
  const linked = linkSignals(one.signal, other.signal);
  assert.equal(linked.signal.aborted, false);
  other.abort("enough");
  assert.deepEqual([linked.signal.aborted, linked.signal.reason], [true, "enough"]);
  assert.equal(linkSignals(other.signal).signal.reason, "enough");
});

test("aborts by itself, which its sources do not notice", () => {
  const source = new AbortController();
  const linked = linkSignals(source.signal);
  linked.abort("late");
  assert.deepEqual([linked.signal.reason, source.signal.aborted], ["late", false]);
});

test("released, it leaves nothing at its sources", () => {
  const source = new AbortController();
  const linked = linkSignals(source.signal);
  linked.signal.addEventListener("abort", () => assert.fail("it is released"));
  linked.release();
  assert.equal(getEventListeners(source.signal, "abort").length, 0);
  source.abort();
});
