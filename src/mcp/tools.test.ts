import assert from "node:assert/strict";
import { test } from "node:test";
import { route, routes } from "../contract/routes.ts";
import { changes, type Row } from "../contract/table.ts";
import { groups } from "./groups.ts";
import type { Offer } from "./offer.ts";
import { offeredRow, offeredTools } from "./tools.ts";

const all: Offer = { readOnly: false };
const reading: Offer = { readOnly: true };
const rowsIn = (offer: Offer) => offeredTools(offer).flatMap(({ actions }) => [...actions.values()]);

test("there are at most 20 tools, and at most 6,000 tokens of schema at 4 characters a token", () => {
  const tools = offeredTools(all);
  const text = JSON.stringify(tools.map((tool) => ({ ...tool, actions: undefined })));
  assert.ok(tools.length <= 20, `${tools.length} tools`);
  assert.ok(text.length / 4 <= 6000, `${Math.round(text.length / 4)} tokens`);
});

test("every row of the API is reached: by a tool of its own, or by api_call, but for those whose answer holds a secret, or that take a file", () => {
  for (const { name, secret, upload } of routes)
    assert.equal(offeredRow(all, name) === undefined, secret !== null || upload !== null, name);
});

test("a tool reads or changes, never both, and says which", () => {
  for (const { name, actions, annotations } of offeredTools(all))
    for (const row of actions.values()) assert.equal(annotations.readOnlyHint, !changes(row), `${name}: ${row.name}`);
});

test("read-only, no row that changes anything is offered in any way", () => {
  assert.deepEqual(
    rowsIn(reading)
      .filter(changes)
      .map(({ name }) => name),
    [],
  );
  for (const row of (routes as readonly Row[]).filter(changes)) assert.equal(offeredRow(reading, row.name), undefined);
  for (const { name, annotations, inputSchema } of offeredTools(reading)) {
    assert.ok(annotations.readOnlyHint, name);
    assert.ok(!("dry_run" in (inputSchema["properties"] as object)), name);
  }
});

test("read-only or not, no row that reads is lost", () => {
  const names = (rows: readonly Row[]) => rows.filter((row) => !changes(row)).map(({ name }) => name);
  assert.deepEqual(names(rowsIn(reading)), names(rowsIn(all)));
  assert.ok(groups.every(({ actions }) => Object.values(actions).some((name) => !changes(route(name)))));
});
