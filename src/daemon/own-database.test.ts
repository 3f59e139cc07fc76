import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { silentLog } from "../kit/log.ts";
import { guardServer } from "./own-database.ts";

test("a control database that does not answer is started again only when its postmaster has ended", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  let starts = 0;
  let hasProcess = true;
  const errors: string[] = [];
  const log = { ...silentLog, error: (_fields: object, text: string) => void errors.push(text) };
  const server = {
    observe: async () => "stopped" as const,
    hasProcess: () => hasProcess,
    ensure: async () => void (starts += 1),
  };
  const guard = guardServer(server, log);
  t.mock.timers.tick(2000);
  await turn();
  assert.deepEqual([starts, errors], [0, []]);
  hasProcess = false;
  t.mock.timers.tick(2000);
  await turn();
  assert.equal(starts, 1);
  assert.match(errors.join(), /database exited/);
  await guard.end();
});
