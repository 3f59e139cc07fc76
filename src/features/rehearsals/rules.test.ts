import assert from "node:assert/strict";
import { test } from "node:test";
import { rehearsalLines } from "../../contract/rehearsal.ts";
import type { TableState } from "../../ports/postgres-host.ts";
import { lossesOf, reportOf, sameLosses } from "./rules.ts";

const limits = { rows: 100, percent: 1 };
const columns = { 1: "id", 2: "name" };
const untouched = { columns, types: { 1: "integer", 2: "text" }, parts: {}, inserted: 0, updated: 0, deleted: 0 };

function table(name: string, given: Partial<TableState> = {}): TableState {
  return { table: `public.${name}`, oid: name.length, file: 1, rows: 1000, ...untouched, ...given };
}

function report(before: TableState[], after: TableState[]) {
  return reportOf({ before, after, locks: [], seconds: 1, exit_code: 0 });
}

const losses = (before: TableState[], after: TableState[]) => lossesOf(report(before, after), limits);

test("tables that nothing happened to are not told", () => {
  assert.deepEqual(report([table("a")], [table("a")]).tables, []);
});

const kinds: readonly [string, TableState[], boolean, RegExp][] = [
  ["a dropped table", [], true, /^orders: dropped with 1,000 rows$/],
  ["a dropped column", [table("orders", { columns: { 1: "id" } })], true, /column name dropped/],
  [
    "a column that is dropped and added again",
    [table("orders", { columns: { 1: "id", 3: "name" } })],
    true,
    /column name dropped/,
  ],
  ["a renamed column", [table("orders", { columns: { 1: "id", 2: "title" }, file: 2 })], false, /1,000 rows rewritten/],
  ["a renamed table", [table("renamed", { oid: 6 })], false, /^orders: renamed$/],
  [
    "a table replaced by one with the same rows",
    [table("orders", { oid: 99, file: 99 })],
    false,
    /1,000 rows rewritten/,
  ],
  [
    "a table replaced by one without a column",
    [table("orders", { oid: 99, columns: { 1: "id" } })],
    true,
    /column name dropped/,
  ],
  ["one percent of the rows", [table("orders", { rows: 990 })], false, /10 rows removed/],
  ["more than one percent of the rows", [table("orders", { rows: 989 })], true, /11 rows removed/],
  ["rows that are deleted and inserted again", [table("orders", { deleted: 1000 })], true, /1,000 rows removed/],
  ["a truncated table", [table("orders", { rows: 0, file: 2 })], true, /1,000 rows removed/],
  [
    "a table that is truncated and filled again",
    [table("orders", { file: 2, inserted: 1000 })],
    true,
    /1,000 rows rewritten, 1,000 rows removed/,
  ],
  ["changed rows", [table("orders", { updated: 1500 })], false, /^orders: 1,000 rows updated$/],
  [
    "another type",
    [table("orders", { types: { 1: "bigint", 2: "text" } })],
    false,
    /^orders: column id is now bigint$/,
  ],
  [
    "an index that could not be finished",
    [table("orders", { parts: { "index by_name": "not valid" } })],
    false,
    /^orders: index by_name added, not valid$/,
  ],
  ["more rows", [table("orders", { rows: 1001 })], false, /^orders: 1 row more$/],
];
for (const [what, after, isLoss, line] of kinds)
  test(`${what} is told${isLoss ? " and needs a person" : ", and needs nobody"}`, () => {
    const before = [table("orders")];
    assert.match(rehearsalLines(report(before, after)).join("\n"), line);
    assert.equal(losses(before, after).length, isLoss ? 1 : 0);
  });

test("a large table may lose no more rows than the limit", () => {
  const before = [table("orders", { rows: 1_000_000 })];
  assert.equal(losses(before, [table("orders", { rows: 999_900 })]).length, 0);
  assert.equal(losses(before, [table("orders", { rows: 999_899 })]).length, 1);
});

test("what was approved covers the same tables and columns, and rows of the same magnitude", () => {
  const lost = (rows: number) => sameLosses(losses([table("orders")], [table("orders", { rows })]));
  assert.deepEqual(lost(500), lost(510));
  assert.notDeepEqual(lost(989), lost(500));
  assert.notDeepEqual(lost(0), sameLosses(losses([table("orders")], [])));
});

test("at most 200 tables are told, those that lose something first", () => {
  const before = Array.from({ length: 300 }, (_, n) => table(`t${n}`, { oid: n }));
  const after = before.slice(0, 299).map((each) => ({ ...each, file: 2 }));
  const { tables, further_tables } = report(before, after);
  assert.deepEqual([tables.length, further_tables, tables[0]?.table], [200, 100, "public.t299"]);
});

test("of a table's changes twenty lines are told, the last of which counts the others", () => {
  const after = (added: number) => {
    const more = Object.fromEntries(Array.from({ length: added }, (_, index) => [index + 3, `c${index}`]));
    return table("orders", { columns: { ...columns, ...more } });
  };
  const changes = (added: number) => report([table("orders")], [after(added)]).tables[0]?.changes ?? [];
  assert.deepEqual([changes(20).length, changes(20).at(-1)], [20, "column c19 added"]);
  assert.deepEqual([changes(25).length, ...changes(25).slice(-2)], [20, "column c18 added", "6 more changes"]);
});
