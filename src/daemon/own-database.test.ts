import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { silentLog } from "../kit/log.ts";
import { guardServer } from "./own-database.ts";

test("a control database that does not answer is started again only when its postmaster has ended, or at the hour for it after an update", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  let starts = 0;
  let hasProcess = true;
  let [isReplaced, mayRestart, stops] = [false, false, 0];
  const errors: string[] = [];
  const log = { ...silentLog, error: (_fields: object, text: string) => void errors.push(text) };
  const server = {
    observe: async () => "stopped" as const,
    hasProcess: () => hasProcess,
    isReplaced: async () => isReplaced,
    stop: async () => void (stops += 1),
    ensure: async () => void (starts += 1),
  };
  const guard = guardServer(server, log, () => mayRestart);
  t.mock.timers.tick(2000);
  await turn();
  assert.deepEqual([starts, errors], [0, []]);
  hasProcess = false;
  t.mock.timers.tick(2000);
  await turn();
  assert.equal(starts, 1);
  assert.match(errors.join(), /database exited/);
  [hasProcess, isReplaced] = [true, true];
  t.mock.timers.tick(2000);
  await turn();
  assert.deepEqual([starts, stops], [1, 0], "not at this hour");
  mayRestart = true;
  t.mock.timers.tick(2000);
  await turn();
  assert.deepEqual([starts, stops], [2, 1]);
  await guard.end();
});
