import assert from "node:assert/strict";
import { test } from "node:test";
import { createEndRequests, createShutdown, EndedAtStart } from "./shutdown.ts";

test("signals within two seconds are one request to end, and a later one ends at once", () => {
  let nowMs = 5000;
  const requests = createEndRequests(() => nowMs);
  const at = (ms: number) => {
    nowMs = ms;
    return requests.add();
  };
  assert.deepEqual([at(5000), at(5000), at(6999), at(7000)], ["first", "repeated", "repeated", "second"]);
});

test("an end requested during a start stops it at its next step and ends what was started, the newest first", async () => {
  const ended: string[] = [];
  const shutdown = createShutdown((line) => ended.push(line));
  const part = (name: string) => shutdown.onEnd(name, async () => void ended.push(name));
  const goOn = Promise.withResolvers<void>();
  const started = shutdown.during(async () => {
    part("database");
    await goOn.promise;
    part("applications");
    part("never started");
  });
  const over = shutdown.run();
  goOn.resolve();
  await assert.rejects(started, EndedAtStart);
  await over;
  assert.deepEqual(ended, ["applications", "database"]);
});
