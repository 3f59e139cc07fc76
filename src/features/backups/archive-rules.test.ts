import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ArchiveCopy, ArchiveChain } from "./archive-queries.ts";
import { isOverlong, needsCopy, oldCopies, outsideText, recoveryOf, windowsOf } from "./archive-rules.ts";

const day = 24 * 60 * 60_000;
const noon = Date.parse("2026-01-20T12:00:00.000Z");
const at = (days: number) => new Date(noon - days * day).toISOString();

const chain = (id: string, until: string | null, stored_position = 9000) =>
  ({ id, stored_until: until, stored_position }) as ArchiveChain;
const base = (id: string, chain_id: string, from: string | null, more: Partial<ArchiveCopy> = {}) =>
  ({
    ...{ id, chain_id, status: from === null ? "copying" : "completed", restorable_from: from, stop_position: 100 },
    ...{ size_bytes: 100, log_bytes: 10, created_at: from ?? at(0) },
    ...more,
  }) as ArchiveCopy;

describe("the archive of a database", () => {
  const chains = [chain("one", at(5)), chain("two", at(0))];
  const bases = [base("a", "one", at(9)), base("b", "one", at(7)), base("c", "two", at(4)), base("d", "two", null)];

  it("shows a window for each chain, from its first copy to what is stored", () => {
    assert.deepEqual(windowsOf(chains, bases), [
      { from: at(9), to: at(5) },
      { from: at(4), to: at(0) },
    ]);
    assert.deepEqual(windowsOf([chain("new", null), chain("empty", at(0))], bases), []);
    // The log of a copy's making is not stored yet.
    assert.deepEqual(windowsOf([chain("one", at(10))], bases), []);
  });

  it("shows a moment as it was last, after a clock was set back", () => {
    const again = [...chains, chain("three", at(2))];
    const copies = [...bases, base("f", "three", at(4.5)), base("g", "three", at(3))];
    assert.deepEqual(windowsOf(again, copies), [
      { from: at(9), to: at(5) },
      { from: at(4.5), to: at(2) },
    ]);
    const over = [chain("one", at(5)), chain("again", at(4))];
    const two = [base("a", "one", at(9)), base("b", "again", at(6))];
    assert.deepEqual(windowsOf(over, two), [
      { from: at(9), to: at(6) },
      { from: at(6), to: at(4) },
    ]);
    assert.equal(recoveryOf(over, two, new Date(at(5.5)))?.chain.id, "again");
    assert.equal(recoveryOf(over, two, new Date(at(7)))?.chain.id, "one");
  });

  it("recovers a moment from the newest copy before it, with no more log than that needs", () => {
    const found = (days: number) => {
      const recovery = recoveryOf(chains, bases, new Date(at(days)));
      return recovery && [recovery.chain.id, recovery.base.id, recovery.end];
    };
    // What was committed while the copy "b" ended may be behind its end, but not behind that of the one after it.
    assert.deepEqual(found(8), ["one", "a", 9000]);
    const later = [...bases, base("e", "one", at(6), { stop_position: 200 })];
    assert.equal(recoveryOf(chains, later, new Date(at(8)))?.end, 200);
    assert.deepEqual(found(7), ["one", "b", 9000]);
    assert.deepEqual(found(6), ["one", "b", 9000]);
    assert.deepEqual(found(2), ["two", "c", 9000]);
    for (const days of [10, 4.5, -1]) assert.equal(found(days), undefined, `${days} days ago`);
  });

  it("needs another copy after a week, or when its log is twice as large and worth it", () => {
    const needs = (...given: ArchiveCopy[]) => needsCopy(given, new Date(noon));
    const mib = 1024 ** 2;
    assert.equal(needs(), true);
    assert.equal(needs(base("a", "one", null)), true);
    assert.equal(needs(base("a", "one", at(6))), false);
    assert.equal(needs(base("a", "one", at(8))), true);
    assert.equal(needs(base("a", "one", at(1), { log_bytes: 63 * mib })), false);
    assert.equal(needs(base("a", "one", at(1), { log_bytes: 65 * mib })), true);
    assert.equal(needs(base("a", "one", at(1), { size_bytes: 40 * mib, log_bytes: 79 * mib })), false);
  });

  it("keeps a copy before every moment of the retention, within the limit, and always the newest", () => {
    const old = (days: number, limitBytes: number, isLocal = () => true) =>
      oldCopies(bases, { days, limitBytes, isLocal, now: new Date(noon) }).map(({ id }) => id);
    assert.deepEqual(old(30, 1000), []);
    assert.deepEqual(old(6, 1000), ["a"]);
    assert.deepEqual(old(3, 1000), ["a", "b"]);
    assert.deepEqual(old(30, 250), ["a"]);
    assert.deepEqual(old(30, 1), ["a", "b"]);
    const elsewhere = () => false;
    assert.deepEqual(old(30, 1, elsewhere), []);
  });

  it("says which moments there are", () => {
    assert.match(outsideText([]), /yet/);
    assert.equal(
      outsideText(windowsOf(chains, bases)),
      `Only these moments can be restored: from ${at(9)} to ${at(5)}, and from ${at(4)} to ${at(0)}.`,
    );
  });

  it("ends while no copy can be made, so that its log does not grow for ever", () => {
    const mib = 1024 ** 2;
    const without = { first_position: 100 * mib, stored_position: 612 * mib };
    assert.equal(isOverlong(without, [base("a", "one", null)]), false);
    assert.equal(isOverlong({ ...without, stored_position: 613 * mib }, []), true);
    const large = base("a", "one", at(1), { size_bytes: 64 * mib, log_bytes: 1024 * mib });
    assert.equal(isOverlong(without, [large]), false);
    assert.equal(isOverlong(without, [{ ...large, log_bytes: 1025 * mib }]), true);
  });
});
