import assert from "node:assert/strict";
import { test } from "node:test";
import { foldEntries } from "./fold-entries.ts";

const entry = (summary: string, type: "token" | "platform" = "platform") =>
  ({ id: summary, summary, actor: { type, name: type, token_id: null } }) as Parameters<typeof folded>[0][number];

test("what was requested and has ended is one entry, of whoever requested it", () => {
  const entries = [
    entry("Backup failed: the disk is full"),
    entry("Database created", "token"),
    entry("Backup requested", "token"),
    entry("Drill requested", "token"),
  ];
  assert.deepEqual(
    foldEntries(entries).map(({ summary, actor }) => [summary, actor.type]),
    [
      ["Backup failed: the disk is full", "token"],
      ["Database created", "token"],
      ["Drill requested", "token"],
    ],
  );
});

test("the same event again and again is one entry with its number; another one between them is not lost", () => {
  const again = Array.from({ length: 3 }, () => entry("web crashed"));
  assert.deepEqual(
    foldEntries([...again, entry("Restarted", "token"), entry("web crashed")]).map(({ summary }) => summary),
    ["web crashed, 3 times", "Restarted", "web crashed"],
  );
});
