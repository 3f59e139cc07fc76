import assert from "node:assert/strict";
import { test } from "node:test";
import { errors, type ErrorDefinition } from "./errors.ts";
import { routes } from "./routes.ts";

/** The messages of these codes say what to do; with the last two, every answer has its own hint or names the missing thing. */
const sayItThemselves = new Set([
  ...["invalid_request", "rate_limited", "unsupported_media_type", "unavailable", "query_timeout", "storage_full"],
  ...["conflict", "not_found"],
]);

test("every error says what to do next: in its hint, by the call to make, or in its sentence", () => {
  const silent = Object.entries<ErrorDefinition>(errors).filter(
    ([code, { hint, next }]) => hint === undefined && next === undefined && !sayItThemselves.has(code),
  );
  assert.deepEqual(
    silent.map(([code]) => code),
    [],
  );
});

test("the call that an error names is a route, and its hint does not repeat its sentence", () => {
  const names = new Set<string>(routes.map(({ name }) => name));
  for (const [code, { meaning, hint, next }] of Object.entries<ErrorDefinition>(errors)) {
    assert.ok(next === undefined || names.has(next), code);
    for (const sentence of hint?.split(/(?<=[.;])\s/) ?? []) assert.ok(!meaning.includes(sentence), code);
  }
});
