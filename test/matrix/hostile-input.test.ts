// Drawn with other operation files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
import assert from "node:assert/strict";
import { test } from "node:test";
import { routes } from "../../src/contract/routes.ts";
import { errorsOf, type Row } from "../../src/contract/table.ts";
import type { ErrorCode } from "../../src/contract/errors.ts";
import { DatabaseWorkFailed } from "../../src/ports/postgres-host.ts";
import { drawCases } from "../support/draw-cases.ts";
import { testThings } from "../support/fixtures.ts";
import { postgresHostDouble } from "../support/port-doubles.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { sharedApi, testOrganization } from "../support/test-platform.ts";

const none = () => Promise.reject(new DatabaseWorkFailed("refused", "There is no such database."));
const stopped = async () => ({ state: "stopped" as const });
const api = await sharedApi({ ports: { postgresHost: postgresHostDouble({ observe: stopped, readerLogin: none }) } });
const org = await testOrganization(api.database.db, "hostile");
const made = await testThings(api.platform, org);
const { project, org: other, variable: key, cron: name, domain: hostname, registry: host } = made;
const ids = { build: made.build, backup: made.backup, webhook: made.webhook, approval: made.approval } as const;

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
    const path = placesOf(row);
    for (const value of values) {
      for (const body of bodiesWith(row, value))
        assertHarmless(row, await api.call(row.method, path, { token: org.operator, body }));
    }
  });
}

/** Returns the row's path with names of things that exist, so that hostile queries and bodies reach the handler; of none that it deletes. */
function placesOf({ method, path, names }: Row): string {
  const named: Readonly<Record<string, string>> = {
    ...{ org: org.slug, slug: names === "organization" ? other : project.slug, key, name, hostname, host },
    ...(names !== null && names in ids ? { id: ids[names as keyof typeof ids] } : {}),
  };
  return path.replaceAll(/:(\w+)/g, (_, parameter: string) => (method === "DELETE" ? "x" : (named[parameter] ?? "x")));
}

function* pathsOf(row: Row): Generator<string> {
  for (const segment of segments) {
    const encoded = segment.startsWith("%") ? segment : encodeURIComponent(segment);
    yield row.path.replaceAll(/:\w+/g, () => encoded);
    const path = placesOf(row);
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
