import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ArchiveCopy, ArchiveChain, ArchiveLoss } from "./archive-queries.ts";
import * as rules from "./archive-rules.ts";
import { isOverlong, needsCopy, oldCopies, outsideText } from "./archive-rules.ts";

const day = 24 * 60 * 60_000;
const noon = Date.parse("2026-01-20T12:00:00.000Z");
const at = (days: number) => new Date(noon - days * day).toISOString();

const chain = (id: string, until: string | null, stored_position = 9000) =>
  ({ id, stored_until: until, stored_position, segment_bytes: 1000, timeline: 1, end_reason: null }) as ArchiveChain;
const base = (id: string, chain_id: string, from: string | null, more: Partial<ArchiveCopy> = {}) =>
  ({
    ...{ id, chain_id, status: from === null ? "copying" : "completed", restorable_from: from, stop_position: 100 },
    ...{ size_bytes: 100, log_bytes: 10, created_at: from ?? at(0) },
    ...more,
  }) as ArchiveCopy;

const spansOf = (chains: readonly ArchiveChain[], bases: readonly ArchiveCopy[], losses: readonly ArchiveLoss[] = []) =>
  rules.spansOf(chains, bases, losses);
const windowsOf = (...given: Parameters<typeof spansOf>) => rules.windowsOf(spansOf(...given));
const recoveryOf = (days: number, ...given: Parameters<typeof spansOf>) =>
  rules.recoveriesOf(spansOf(...given), new Date(at(days)))[0];

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
    assert.equal(recoveryOf(5.5, over, two)?.chain.id, "again");
    assert.equal(recoveryOf(7, over, two)?.chain.id, "one");
  });

  it("recovers a moment from the newest copy before it, with no more log than that needs", () => {
    const found = (days: number) => {
      const recovery = recoveryOf(days, chains, bases);
      return recovery && [recovery.chain.id, recovery.base.id, recovery.end];
    };
    // What was committed while the copy "b" ended may be behind its end, but not behind that of the one after it.
    assert.deepEqual(found(8), ["one", "a", 9000]);
    const later = [...bases, base("e", "one", at(6), { stop_position: 200 })];
    assert.equal(recoveryOf(8, chains, later)?.end, 200);
    assert.deepEqual(found(7), ["one", "b", 9000]);
    assert.deepEqual(found(6), ["one", "b", 9000]);
    assert.deepEqual(found(2), ["two", "c", 9000]);
    for (const days of [10, 4.5, -1]) assert.equal(found(days), undefined, `${days} days ago`);
  });

  describe("in which something is lost", () => {
    const one = [chain("one", at(0))];
    const at3 = (position: number) => ({ start_position: position, stop_position: position + 100 });
    const copies = [
      base("a", "one", at(9), at3(0)),
      base("b", "one", at(7), at3(3500)),
      base("c", "one", at(2), at3(8500)),
    ];
    const lost = { chain_id: "one", position: 3000, until: at(8) };

    it("shows lost log as a gap up to the first copy that does not need it", () => {
      assert.deepEqual(windowsOf(one, copies, [lost]), [
        { from: at(9), to: at(8) },
        { from: at(2), to: at(0) },
      ]);
      assert.deepEqual(rules.gapsOf(spansOf(one, copies, [lost])), [
        { from: at(8), to: at(2), reason: "The log segment 000000010000000000000003 was found missing or damaged." },
      ]);
      assert.deepEqual(
        [recoveryOf(8.5, one, copies, [lost])?.end, recoveryOf(7, one, copies, [lost])],
        [3000, undefined],
      );
      assert.equal(recoveryOf(1, one, copies, [lost])?.base.id, "c");
      // No moment before it is known, and no copy follows yet.
      const open = { chain_id: "one", position: 8000, until: null };
      assert.deepEqual(windowsOf(one, copies.slice(0, 2), [lost, open]), [{ from: at(9), to: at(8) }]);
      assert.deepEqual(rules.nearestTo(windowsOf(one, copies, [lost]), new Date(at(5))), [at(8), at(2)]);
      assert.deepEqual(rules.nearestTo(windowsOf(one, copies, [lost]), new Date(at(10))), [at(9)]);
    });

    it("shows with an older copy what a damaged one would, and names that one where none is older", () => {
      const damaged = copies.map((copy) => (copy.id === "b" ? { ...copy, status: "damaged" as const } : copy));
      assert.deepEqual(windowsOf(one, damaged), [{ from: at(9), to: at(0) }]);
      assert.equal(recoveryOf(7, one, damaged)?.base.id, "a");
      const all = rules.recoveriesOf(spansOf(one, copies), new Date(at(7)));
      assert.deepEqual(
        all.map(({ base: { id } }) => id),
        ["b", "a"],
      );
      const before = [chain("zero", at(10)), ...one];
      const first = [base("z", "zero", at(11)), ...damaged.filter(({ id }) => id !== "a")];
      assert.deepEqual(rules.gapsOf(spansOf(before, first)), [
        { from: at(10), to: at(2), reason: "A copy in the archive was found missing or damaged." },
      ]);
    });

    it("keeps a damaged copy as long as a whole one, and an older one in its place", () => {
      const damaged = copies.map((copy) => (copy.id === "b" ? { ...copy, status: "damaged" as const } : copy));
      const old = (days: number) =>
        oldCopies(damaged, { days, limitBytes: 1000, isLocal: () => true, now: new Date(noon) }).map(({ id }) => id);
      assert.deepEqual([old(30), old(6), old(1)], [[], [], ["a", "b"]]);
    });
  });

  it("needs another copy after a week, or when its log is twice as large and worth it", () => {
    const needs = (...given: ArchiveCopy[]) => needsCopy({ copies: given }, new Date(noon));
    const mib = 1024 ** 2;
    assert.equal(needs(), true);
    assert.equal(needs(base("a", "one", at(1), { status: "damaged" })), true);
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
    const until = (stored_position: number) => ({ ...chain("one", at(0), stored_position), first_position: 100 * mib });
    const isTooLong = (end: number, ...copies: ArchiveCopy[]) => isOverlong({ chain: until(end * mib), copies });
    assert.deepEqual([isTooLong(612), isTooLong(613)], [false, true]);
    const large = base("a", "one", at(1), { size_bytes: 64 * mib, log_bytes: 1024 * mib });
    assert.equal(isTooLong(2000, large), false);
    assert.equal(isTooLong(2000, { ...large, log_bytes: 1025 * mib }), true);
  });
});
