import assert from "node:assert/strict";
import { test } from "node:test";
import { createTurns } from "./turns.ts";

test("work of one key is done in the order it was asked for, that of another does not wait", async () => {
  const inTurn = createTurns();
  const done: string[] = [];
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  const first = inTurn("a", async () => {
    await held;
    done.push("first");
  });
  const second = inTurn("a", async () => void done.push("second"));
  await inTurn("b", async () => void done.push("other"));
  release();
  await Promise.all([first, second]);
  assert.deepEqual(done, ["other", "first", "second"]);
});

test("work that fails is told to who asked, and holds nobody up", async () => {
  const inTurn = createTurns();
  const failing = inTurn("a", () => Promise.reject(new Error("no")));
  const next = inTurn("a", async () => "yes");
  await assert.rejects(failing, /no/);
  assert.equal(await next, "yes");
});
