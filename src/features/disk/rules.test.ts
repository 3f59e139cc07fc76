import assert from "node:assert/strict";
import { test } from "node:test";
import { limitInShortage, nextDatabaseState, nextStorageAccess, type DatabaseDiskState } from "./rules.ts";

const gib = 1024 ** 3;
const mib = 1024 ** 2;
const now = new Date("2026-01-02T03:04:05.678Z");
const later = (ms: number) => new Date(now.getTime() + ms);
const open: DatabaseDiskState = { access: "open", ceiling_bytes: null, closings: 0, reopens_at: null };
const use = (bytes: number, compacting = false) => ({ bytes, limitBytes: gib, compacting });

test("a database is read-only above its limit and open again below 95 % of it", () => {
  assert.equal(nextDatabaseState(use(gib), open, now).access, "open");
  const over = nextDatabaseState(use(gib + 1), open, now);
  assert.equal(over.access, "read_only");
  assert.equal(nextDatabaseState(use(0.96 * gib), over, now).access, "read_only");
  assert.deepEqual(nextDatabaseState(use(0.95 * gib), over, now), open);
});

test("a read-only database that grows on is closed, longer each time, and let in again to delete", () => {
  const over = nextDatabaseState(use(gib + 1), open, now);
  const first = nextDatabaseState(use(gib + 200 * mib), over, now);
  assert.deepEqual(first, { ...first, access: "closed", closings: 1, reopens_at: later(300_000).toISOString() });
  assert.equal(nextDatabaseState(use(gib + 200 * mib), first, later(299_000)), first);
  const again = nextDatabaseState(use(gib + 200 * mib), first, later(300_000));
  assert.equal(again.access, "read_only");
  const second = nextDatabaseState(use(gib + 400 * mib), again, now);
  assert.equal(second.reopens_at, later(600_000).toISOString());
  assert.deepEqual(nextDatabaseState(use(gib / 2), second, now), open);
});

test("a database may grow by its limit while it is compacted", () => {
  const over = nextDatabaseState(use(gib + 1), open, now);
  assert.equal(nextDatabaseState(use(1.9 * gib, true), over, now).access, "read_only");
  assert.equal(nextDatabaseState(use(2.2 * gib, true), over, now).access, "closed");
});

test("a storage folder is read-only above its limit and open again below 95 % of it", () => {
  assert.equal(nextStorageAccess(gib, gib, "open"), "open");
  assert.equal(nextStorageAccess(gib + 1, gib, "open"), "read_only");
  assert.equal(nextStorageAccess(0.96 * gib, gib, "read_only"), "read_only");
  assert.equal(nextStorageAccess(0.95 * gib, gib, "read_only"), "open");
});

test("while the disk is short, only those above the average are limited further", () => {
  assert.equal(limitInShortage(10 * gib, gib), gib - 1);
  assert.equal(limitInShortage(gib / 2, gib), gib / 2);
  assert.equal(limitInShortage(10 * gib, 0), 64 * mib);
});
