import assert from "node:assert/strict";
import { test } from "node:test";
import { entriesOf } from "./entries-of.ts";

test("a folder lists its folders before its files, and numbers in names by their value", () => {
  const files = ["src/part-10.ts", "src/part-2.ts", "src/app-10/a.ts", "src/app-2/a.ts", "README.md"];
  const entries = entriesOf(
    files.map((path) => ({ path, size_bytes: 1 })),
    "src/",
  );
  assert.deepEqual(
    entries.map(({ name }) => name),
    ["app-2/", "app-10/", "part-2.ts", "part-10.ts"],
  );
});
