import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { freePort } from "../../test/support/free-port.ts";
import { openLeases } from "./leases.ts";
import { pastaNetwork } from "./pasta-network.ts";

test("the ports of a closed sandbox are free for others", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "berth-leases-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const ports = openLeases(join(folder, "ports"), await freePort(), 1);
  const parts = { pasta: "pasta", setpriv: null, ip: null };
  const network = pastaNetwork(parts, ports, { open: [], tenantNetworks: [] });
  const serve = { kind: "serve", port: 3000, reach: [] } as const;
  await network.open("run-1", serve);
  assert.deepEqual(network.ids(), ["run-1"]);
  await network.close("run-1");
  assert.deepEqual(network.ids(), []);
  await network.open("run-2", serve);
});

test("a number rests until all others were given, also over a restart", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "berth-leases-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const given: number[] = [];
  for (let round = 0; round < 8; round += 1) {
    const leases = openLeases(join(folder, "subnets"), 100, 8);
    const number = await leases.claim(`run-${round}`, async () => true);
    leases.release(number);
    given.push(number);
  }
  assert.deepEqual(
    given.toSorted((a, b) => a - b),
    [100, 101, 102, 103, 104, 105, 106, 107],
  );
});
