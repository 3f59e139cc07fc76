import assert from "node:assert/strict";
import { test } from "node:test";
import { createKeyedMutex } from "./keyed-mutex.ts";

test("work of one key is done in the order it was asked for, that of another does not wait", async () => {
  const runExclusive = createKeyedMutex();
  const done: string[] = [];
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  const first = runExclusive("a", async () => {
    await held;
    done.push("first");
  });
  const second = runExclusive("a", async () => void done.push("second"));
  await runExclusive("b", async () => void done.push("other"));
  release();
  await Promise.all([first, second]);
  assert.deepEqual(done, ["other", "first", "second"]);
});

test("work that fails is told to who asked, and holds nobody up", async () => {
  const runExclusive = createKeyedMutex();
  const failing = runExclusive("a", () => Promise.reject(new Error("no")));
  const next = runExclusive("a", async () => "yes");
  await assert.rejects(failing, /no/);
  assert.equal(await next, "yes");
});
