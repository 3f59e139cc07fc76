// Drawn with other operation files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
import assert from "node:assert/strict";
import { test } from "node:test";
import { routes } from "../../src/contract/routes.ts";
import { errorsOf, type Row } from "../../src/contract/table.ts";
import type { ErrorCode } from "../../src/contract/errors.ts";
import { drawCases } from "../support/draw-cases.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { sharedApi, testOrganization } from "../support/test-platform.ts";

const api = await sharedApi();
const org = await testOrganization(api.database.db, "hostile");

const random = seededRandom();
const allSegments = [
  "%00",
  "%2e%2e%2f",
  "'; drop table project; --",
  "${7*7}",
  "\u{1F600}",
  "a".repeat(2000),
  "%E0%A4%A",
  "-1",
  "null",
];
const allValues: readonly unknown[] = [
  null,
  true,
  -1,
  1e308,
  "",
  "\0",
  "\ud800",
  "x".repeat(5000),
  [],
  [[]],
  {},
  { $ne: null },
  "__proto__",
];
const segments = drawCases(allSegments, 4, random);
const values = drawCases(allValues, 5, random);

for (const row of routes as readonly Row[]) {
  test(`${row.name} answers hostile input only with declared errors, and never with a server error`, async () => {
    for (const path of pathsOf(row))
      assertHarmless(row, await api.call(row.method, path, { token: org.operator, ...bodyOf(row, "x") }));
    if (row.body === null) return;
    // Nothing does the work that such a row waits for.
    const path = `${row.path.replaceAll(/:\w+/g, "x")}${row.waits ? "?dry_run=true" : ""}`;
    for (const value of values) {
      for (const body of bodiesWith(row, value))
        assertHarmless(row, await api.call(row.method, path, { token: org.operator, body }));
    }
  });
}

function* pathsOf(row: Row): Generator<string> {
  for (const segment of segments) {
    const encoded = segment.startsWith("%") ? segment : encodeURIComponent(segment);
    yield row.path.replaceAll(/:\w+/g, () => encoded);
    const path = row.path.replaceAll(/:\w+/g, "x");
    for (const key of Object.keys(row.query.shape)) {
      yield `${path}?${key}=${encoded}`;
      yield `${path}?${key}=${encoded}&${key}=${encoded}`;
    }
  }
}

function bodyOf(row: Row, value: unknown): { body?: unknown } {
  return row.body === null ? {} : { body: Object.fromEntries(Object.keys(row.body.shape).map((key) => [key, value])) };
}

function* bodiesWith(row: Row, value: unknown): Generator<unknown> {
  yield value;
  yield bodyOf(row, value).body;
  for (const key of Object.keys(row.body?.shape ?? {})) yield { [key]: value };
  yield JSON.parse(`{"__proto__": ${JSON.stringify(value)}, "constructor": 1}`);
}

function assertHarmless(row: Row, called: { status: number; text: string; body: Record<string, unknown> }): void {
  assert.ok(called.status < 500, called.text);
  if (called.status < 400) return;
  const code = called.body["code"] as ErrorCode;
  assert.ok(errorsOf(row).includes(code) || code === "not_found", `${row.name}: ${called.text}`);
  assert.ok(!/select |insert |syntax error|\.ts:|node_modules/i.test(called.text), called.text);
}
