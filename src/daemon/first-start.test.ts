import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLog } from "../kit/log.ts";
import type { Db } from "../store/database.ts";
import { deployExample } from "./first-start.ts";

test("a control database that is slow at the start costs the example, not the platform", async () => {
  const slow = {
    selectFrom() {
      throw new Error("timeout exceeded when trying to connect");
    },
  } as unknown as Db;
  const logged: string[] = [];
  const log = { ...silentLog, error: (_: unknown, text: string) => void logged.push(text) };
  const places = { gitBin: "git", baseUrl: "http://127.0.0.1:1", tokenFile: "/nonexistent", source: "/nonexistent" };
  assert.equal(await deployExample({ db: slow, log, ...places, onLine: () => {} }), "failed");
  assert.deepEqual(logged, ["the example could not be deployed; the platform runs without it"]);
});
