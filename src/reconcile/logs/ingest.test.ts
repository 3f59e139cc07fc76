import assert from "node:assert/strict";
import { test } from "node:test";
import { redactLines } from "./ingest.ts";

test("however long lines take to redact, others get their turn in between", async () => {
  let turns = 0;
  const timer = setInterval(() => (turns += 1), 1);
  const slow = (text: string) => {
    for (const until = performance.now() + 5; performance.now() < until;);
    return text.toUpperCase();
  };
  const lines = Array.from({ length: 40 }, (_, number) => `line ${number}`);
  assert.deepEqual(
    await redactLines(lines, slow),
    lines.map((line) => line.toUpperCase()),
  );
  clearInterval(timer);
  assert.ok(turns >= 5, `${turns} turns in 200 ms`);
});
