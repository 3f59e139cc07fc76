import assert from "node:assert/strict";
import { test } from "node:test";

import { sentencesOf } from "./sentences-of.ts";

test("sentences are found with their place and with what they insert, other strings are not", () => {
  const source = [
    'const code = "not_found";',
    "const query = `select name from ${table}`;",
    "fail(`The project ${name} is deleted.`, {",
    '  hint: "Undelete it first.",',
    "});",
  ].join("\n");
  assert.deepEqual(sentencesOf("x.ts", source), [
    { line: 3, text: "The project ${name} is deleted." },
    { line: 4, text: "Undelete it first." },
  ]);
});
