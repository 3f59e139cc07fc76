import assert from "node:assert/strict";
import { test } from "node:test";
import { createEndRequests } from "./shutdown.ts";

test("signals within two seconds are one request to end, and a later one ends at once", () => {
  let nowMs = 5000;
  const requests = createEndRequests(() => nowMs);
  const at = (ms: number) => {
    nowMs = ms;
    return requests.add();
  };
  assert.deepEqual([at(5000), at(5000), at(6999), at(7000)], ["first", "repeated", "repeated", "second"]);
});
