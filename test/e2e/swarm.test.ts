// Runs alone: its engines use the fixed ports of a swarm, and it must not lose a request.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { edgePid } from "../support/edges.ts";
import { eventually } from "../support/eventually.ts";
import type { Member } from "./members.ts";
import { replicas, swarmLacks, swarmOfThree } from "./swarm-platform.ts";

describe("a platform on a Docker Swarm", { skip: swarmLacks }, () => {
  const swarm = swarmOfThree();

  test("reports the swarm as its runtime, and how replicas are isolated", async () => {
    const isolated = async () => {
      const { body } = await swarm.primary().call<{
        platform: { runtime: string; isolation: string[]; missing: { part: string }[] };
      }>("GET", "/v1/me");
      assert.equal(body.platform.runtime, "swarm");
      // The guard reports the isolation, and it may not run yet.
      if (!body.platform.isolation.includes("no_new_privileges")) return undefined;
      return body.platform.missing.map(({ part }) => part);
    };
    assert.deepEqual(await eventually(isolated, "the guard runs"), ["private_app_folder"]);
  });

  test("a push goes live on all machines", async () => {
    await swarm.goLive();
    assert.equal(await swarm.seen(swarm.secondEdge()), replicas);
    const { body } = await swarm.primary().call<{ machines: { replicas: number }[] }>("GET", "/v1/platform/machines");
    assert.deepEqual(
      body.machines.map((each) => each.replicas).toSorted((one, other) => one - other),
      [1, 1, 2],
    );
  });

  test("all control planes are killed, including the primary", async (t) => {
    await swarm.underLoad(t, async () => {
      await swarm.primary().end("SIGKILL");
      await swarm.second().kill();
      await swarm.third().kill();
      await sleep(5000);
      await Promise.all([swarm.second().begin(), swarm.third().begin()]);
      await swarm.primary().restart();
      await swarm.deploy();
      await swarm.allAnswer();
    });
  });

  test("an edge and its control plane are killed, and a deployment goes live without them", async (t) => {
    await swarm.underLoad(t, async (away) => {
      away.from = Date.now();
      await swarm.second().kill();
      killEdge(swarm.second());
      await swarm.deploy();
      await swarm.second().begin();
      await eventually(async () => (await swarm.seen(swarm.secondEdge())) === replicas, "the second edge serves");
      away.to = Date.now();
      await swarm.deploy();
    });
  });
});

function killEdge({ dataDir }: Member): void {
  const pid = edgePid(`${dataDir}/haproxy`);
  // HAProxy's main process and its worker share a process group.
  process.kill(-pid, "SIGKILL");
}
