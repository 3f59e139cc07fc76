// Runs alone: its engines use the fixed ports of a swarm, and it must not lose a request.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { swarmLacks, swarmOfThree } from "./swarm-platform.ts";

/** The number of deploys and rollbacks; every third is a rollback. */
const changes = 20;

describe("deploys on a Docker Swarm", { skip: swarmLacks }, () => {
  const swarm = swarmOfThree();

  test("a push goes live on all machines", () => swarm.goLive());

  test(`${changes} deploys and rollbacks`, async (t) => {
    await swarm.underLoad(t, async () => {
      for (let change = 1; change <= changes; change += 1) {
        if (change % 3 !== 0) await swarm.deploy();
        else assert.equal((await swarm.primary().call("POST", "/v1/projects/live/rollback")).status, 200);
      }
      await swarm.allAnswer();
    });
  });
});
