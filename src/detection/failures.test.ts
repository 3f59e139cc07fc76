import assert from "node:assert/strict";
import { test } from "node:test";
import { stages } from "../ports/failure.ts";
import { builderFailures } from "./failures.ts";

test("every failure has a stage of a deploy, a sentence and an advice", () => {
  for (const [code, { stage, summary, hint }] of Object.entries(builderFailures)) {
    assert.match(code, /^[a-z]+(?:_[a-z]+)*$/);
    assert.ok(stages.includes(stage), code);
    assert.match(summary, /^[^\n]+\.$/, code);
    assert.match(hint, /\.$/, code);
  }
});
