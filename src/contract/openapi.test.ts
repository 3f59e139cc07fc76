import assert from "node:assert/strict";
import { test } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import type { z } from "zod";
import { scopes } from "./access.ts";
import { capabilities } from "./capabilities.ts";
import { errors, type ErrorDefinition } from "./errors.ts";
import { openapi } from "./openapi.ts";
import { routes } from "./routes.ts";
import { changes, errorsOf, type Row } from "./table.ts";

const document = openapi("1.2.3") as unknown as {
  paths: Record<string, Record<string, { responses: object }>>;
  components: { schemas: object };
};

test("the description is valid OpenAPI 3.1 for a validator that is not ours", async () => {
  const { valid, errors: found } = await new Validator().validate(structuredClone(document) as never);
  assert.ok(valid, JSON.stringify(found));
});

test("it has every row with every status that the row can answer", () => {
  for (const row of routes as readonly Row[]) {
    const operation = document.paths[row.path.replaceAll(/:(\w+)/g, "{$1}")]?.[row.method.toLowerCase()];
    const dryRunResult = changes(row) ? [200] : [];
    const refused = errorsOf(row).map((code) => errors[code].status);
    const statuses = new Set([...row.success, ...dryRunResult, ...refused].map(String));
    assert.deepEqual(new Set(Object.keys(operation?.responses ?? {})), statuses, row.name);
  }
});

test("every reference leads to a named schema", () => {
  const referred = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(
    ([, name]) => name as string,
  );
  for (const name of referred) assert.ok(name in document.components.schemas, name);
  for (const name of Object.keys(document.components.schemas))
    assert.ok(referred.includes(name), `nothing refers to ${name}`);
});

/** Codes of the sign-in, which is no row. */
const ofSignIn = ["provider_unavailable"];

test("every error code is one that some row or the sign-in may answer", () => {
  const answered = new Set([...(routes as readonly Row[]).flatMap((row) => errorsOf(row)), ...ofSignIn]);
  assert.deepEqual([...answered].sort(), Object.keys(errors).sort());
});

test("the row that an error names as the next one exists, and needs no more than a path can tell", () => {
  for (const [code, { next }] of Object.entries(errors) as [string, ErrorDefinition][]) {
    if (next === undefined) continue;
    const row = (routes as readonly Row[]).find(({ name }) => name === next);
    assert.ok(row, `${code} names ${next}`);
    assert.ok(row.body === null || row.body.safeParse({}).success, `${code}: ${next} needs a body`);
  }
});

test("no two rows share a name or a method and path, and every scope that a row asks for exists", () => {
  const all = routes as readonly Row[];
  assert.equal(new Set(all.map(({ name }) => name)).size, all.length);
  assert.equal(new Set(all.map(({ method, path }) => `${method} ${path}`)).size, all.length);
  const asked = all.flatMap(({ scope, further_scopes }) => [scope ?? [], further_scopes].flat());
  assert.deepEqual([...new Set(asked)].toSorted(), scopes.toSorted(), "each scope is asked for by some row");
});

test("capabilities list every row, scope and error code", () => {
  const listed = capabilities("1.2.3");
  assert.deepEqual(
    [listed.routes.length, listed.error_codes.length, listed.scopes.length],
    [routes.length, Object.keys(errors).length, scopes.length],
  );
});

test("every pattern and bound can be understood by others, and rows of a table are objects", () => {
  const text = JSON.stringify(openapi("0"));
  assert.doesNotMatch(text, /\\\\p\{/i);
  const paths = openapi("0")["paths"] as Record<string, Record<string, Operation>>;
  const rows = paths["/v1/projects/{slug}/data/tables/{schema}/{table}/rows"];
  for (const [method, field] of [
    ["post", "values"],
    ["delete", "key"],
  ] as const)
    assert.equal(rows?.[method]?.requestBody.content["application/json"].schema.properties[field]?.type, "object");
  for (const operation of Object.values(paths).flatMap((each) => Object.values(each)))
    for (const { in: place, schema } of operation.parameters)
      assert.ok(place !== "query" || (schema.type !== undefined && (schema.maximum ?? 0) < Number.MAX_SAFE_INTEGER));
});

test("the declared bounds of a number in a query are those that a request is held to", () => {
  let compared = 0;
  for (const row of routes as readonly Row[]) {
    const operation = document.paths[row.path.replaceAll(/:(\w+)/g, "{$1}")]?.[row.method.toLowerCase()];
    for (const { name, in: place, schema } of (operation as unknown as Operation).parameters) {
      if (place !== "query" || schema.type !== "integer") continue;
      const field = (row.query as z.ZodObject).shape[name] as z.ZodType;
      const isAccepted = (value: number) => field.safeParse(String(value)).success;
      const { minimum = NaN, maximum = NaN } = schema;
      const accepted = [minimum - 1, minimum, maximum, maximum + 1].map(isAccepted);
      assert.deepEqual(accepted, [false, true, true, false], `${row.name}: ${name}`);
      compared += 1;
    }
  }
  assert.ok(compared > 5, `${compared} compared`);
});

test("slug_taken speaks of projects and of organizations, which both have slugs", () => {
  assert.match(errors.slug_taken.meaning, /project.*organization/);
});

interface Operation {
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly schema: { type?: string; minimum?: number; maximum?: number };
  }[];
  readonly requestBody: {
    readonly content: { "application/json": { schema: { properties: Record<string, { type?: string }> } } };
  };
}
