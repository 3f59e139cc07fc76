import assert from "node:assert/strict";
import { test } from "node:test";
import { allTogether } from "./throw-together.ts";

test("works that belong together are all waited for, also when one of them fails at once", async () => {
  const slow = Promise.withResolvers<string>();
  let hasEnded = false;
  const both = allTogether([Promise.reject(new Error("no network")), slow.promise]);
  const outcome = both.catch((error: unknown) => error).finally(() => (hasEnded = true));
  await new Promise(setImmediate);
  assert.equal(hasEnded, false);
  slow.resolve("a folder");
  assert.match(String(await outcome), /no network/);
  assert.deepEqual(await allTogether([Promise.resolve(1), Promise.resolve("two")]), [1, "two"]);
});
