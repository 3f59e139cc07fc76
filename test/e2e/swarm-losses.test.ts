// Runs alone: its engines use the fixed ports of a swarm, and it must not lose a request.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "../support/eventually.ts";
import { replicas, swarmLacks, swarmOfThree } from "./swarm-platform.ts";

const cutMs = 12_000;

describe("machines of a Docker Swarm that are lost", { skip: swarmLacks }, () => {
  const swarm = swarmOfThree();

  async function comeBack(): Promise<void> {
    await swarm.machine(2).connect(true);
    await swarm.machine(2).begin();
    await swarm.allManage();
    await swarm.deploy();
    await swarm.allAnswer();
  }

  test("a push goes live on all machines", () => swarm.goLive());

  test("an engine is killed", async (t) => {
    await swarm.underLoad(t, async () => {
      await swarm.occupy(1);
      await swarm.timed(t, "an engine killed", () => swarm.machine(1).end("SIGKILL"));
      await sleep(cutMs);
      await swarm.timed(t, "and started again", () => swarm.machine(1).begin());
      await swarm.allManage();
      await swarm.deploy();
      await swarm.allAnswer();
    });
  });

  test("the engine of the primary control plane's machine is killed, and the control plane uses another manager", async (t) => {
    await swarm.underLoad(t, async () => {
      await swarm.occupy(0);
      await swarm.timed(t, "the engine of Berth's machine killed", () => swarm.machine(0).end("SIGKILL"));
      assert.equal(
        (await swarm.primary().call("PUT", "/v1/projects/live/scale", { replicas: replicas + 2 })).status,
        200,
      );
      await eventually(async () => (await swarm.seen()) === replicas + 2, "two more replicas answer");
      assert.equal((await swarm.primary().call("PUT", "/v1/projects/live/scale", { replicas })).status, 200);
      await swarm.timed(t, "and started again", () => swarm.machine(0).begin());
      await swarm.allManage();
      await swarm.deploy();
      await swarm.allAnswer();
    });
  });

  test("a machine that leads the swarm is lost", async (t) => {
    await swarm.underLoad(t, async () => {
      // On a busy machine, the managers may elect another leader at any time, so repeat until the third machine leads.
      await eventually(
        async () => (await swarm.leader()) === swarm.machine(2) || (await swarm.replaceLeader()),
        "the third machine leads",
      );
      await swarm.occupy(2);
      await swarm.timed(t, "the leader's machine lost", async () => {
        await swarm.machine(2).connect(false);
        const lostAt = Date.now();
        const isReplaced = async () => ![undefined, swarm.machine(2)].includes(await swarm.leader());
        const elected = eventually(isReplaced, "another machine leads");
        await swarm.machine(2).lose();
        await elected;
        t.diagnostic(`another machine led the swarm after ${((Date.now() - lostAt) / 1000).toFixed(1)} s`);
      });
      await comeBack();
    });
  });

  test("a machine that manages the swarm without leading it is lost", async (t) => {
    await swarm.underLoad(t, async () => {
      await eventually(
        async () => ![undefined, swarm.machine(2)].includes(await swarm.leader()) || (await swarm.replaceLeader()),
        "another machine leads",
      );
      await swarm.occupy(2);
      await swarm.timed(t, "a manager's machine lost", async () => {
        await swarm.machine(2).connect(false);
        await swarm.machine(2).lose();
      });
      await comeBack();
    });
  });

  test(`a machine is cut off for ${cutMs / 1000} s`, async (t) => {
    await swarm.underLoad(t, async () => {
      await swarm.occupy(2);
      const begun = Date.now();
      await swarm.timed(t, "a machine cut off", () => swarm.machine(2).connect(false));
      await eventually(() => Date.now() - begun > cutMs, "the cut is over");
      await swarm.timed(t, "and back", () => swarm.machine(2).connect(true));
      await swarm.allManage();
      await swarm.deploy();
      await swarm.allAnswer();
    });
  });
});
