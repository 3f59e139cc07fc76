import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { test } from "node:test";

import { Validator } from "@seriousme/openapi-schema-validator";

const file = join(resolve(import.meta.dirname, "../.."), "openapi.json");

test("openapi.json is OpenAPI 3.1 for a validator that isn't ours", async () => {
  const document = JSON.parse(await readFile(file, "utf8")) as { openapi: string };
  assert.match(document.openapi, /^3\.1\./);
  const result = await new Validator().validate(document);
  assert.ok(result.valid, JSON.stringify(result.errors, null, 2));
});
