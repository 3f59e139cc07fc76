import assert from "node:assert/strict";
import { test } from "node:test";
import { pinAddress } from "./pinned-address.ts";

test("of a name's addresses only one that may be reached is called", async () => {
  const resolve = async () => ["10.0.0.1", "192.0.2.1", "192.0.2.2"];
  const pin = (allowed: readonly string[]) =>
    pinAddress("chat.test", { resolve, mayReach: (address) => allowed.includes(address) });
  assert.deepEqual(await pin(["192.0.2.1", "192.0.2.2"]), { outcome: "found", address: "192.0.2.1" });
  assert.equal((await pin([])).outcome, "closed");
});
