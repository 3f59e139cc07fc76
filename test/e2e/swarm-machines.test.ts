// Runs alone: its engines use the fixed ports of a swarm, and it must not lose a request.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { provideImage } from "../../tools/images/provide-image.ts";
import type { Result } from "../../src/contract/routes.ts";
import { run, systemPath } from "../../src/kit/exec.ts";
import { cliUser, type CliUser } from "../support/cli.ts";
import { withoutDocker } from "../support/docker-engine.ts";
import { runsAll } from "../support/draw-cases.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { startMachines, type TestMachine, type TestMachines } from "../support/machines.ts";
import { withoutRegistry } from "../support/registry.ts";
import { liveApp } from "./apps.ts";
import { createApp, startPlatform, type TestApp, type TestPlatform } from "./platform.ts";
import { ask, failures, startTraffic, summary } from "./traffic.ts";

const skip =
  withoutDocker || withoutRegistry || (!runsAll && "SKIPPED: a Docker Swarm takes minutes; npm test -- --all runs it");
const replicas = 4;

/** Two machines outside of any swarm, and a platform whose engine manages its own swarm. */
describe("machines of a platform on a Docker Swarm", { skip }, () => {
  let cluster: TestMachines;
  let platform: TestPlatform;
  let operator: CliUser;
  let live: TestApp;
  const machine = (index: 0 | 1 | 2) => cluster.machines[index] as TestMachine;

  before(async () => {
    cluster = await startMachines(3, "strangers");
    platform = await startPlatform({
      ...{ BERTH_RUNTIME: "swarm", BERTH_DOCKER_SOCKET: machine(0).socket },
      BERTH_BASE_IMAGE: `node=${await provideImage(machine(0).socket, "node")}`,
      BERTH_SWARM_REGISTRY_PORT: String(await freePort()),
    });
    operator = await cliUser({ url: platform.api, token: platform.token });
    live = await createApp(platform, "live", liveApp({ version: "v1" }));
    await platform.call("PUT", "/v1/projects/live/settings", { storage: false });
  });
  after(async () => {
    await operator?.[Symbol.asyncDispose]();
    await platform?.destroy();
    await cluster?.close();
  });

  const berth = async (...args: readonly string[]) => {
    const { exitCode, stdout, stderr } = await operator.berth(["machines", ...args]);
    assert.equal(exitCode, 0, stderr);
    return stdout;
  };
  const listed = async () =>
    (JSON.parse(await berth("list", "--json")) as Result<"platform.machines">).machines.toSorted((one, other) =>
      one.address.localeCompare(other.address),
    );
  const replicasOn = async () => (await listed()).map((each) => each.replicas);
  const allAnswer = () =>
    eventually(async () => {
      const answers = await Promise.all(
        Array.from({ length: 6 * replicas }, () => ask(platform.edgePort, "live", "/replica")),
      );
      return new Set(answers.flatMap(({ status, body }) => (status === 200 ? [body] : []))).size === replicas;
    }, "all replicas answer");
  const statusOfMachines = async () => {
    const { body } = await platform.call<Result<"status.get">>("GET", "/v1/status");
    return body.checks.filter(({ check }) => check === "machines").map(({ subject, status }) => [subject, status]);
  };

  test("join with the script that `berth machines join` prints, and run applications", async () => {
    const script = await berth("join");
    for (const { enter, socket } of [machine(1), machine(2)]) {
      const env = { PATH: systemPath, DOCKER_HOST: `unix://${socket}` };
      const { exitCode, stderr } = await run({ file: "/usr/bin/env", args: [...enter, "sh"] }, { stdin: script, env });
      assert.equal(exitCode, 0, stderr);
    }
    // The new machines pull the guard's image from the registry, with the certificate that the script installed.
    await eventually(
      async () => (await listed()).filter(({ state, guarded }) => state === "ready" && guarded).length === 3,
      "three machines run the guard",
    );
    const pushed = await live.push();
    // A push that fails with an internal error has its reason in the platform's log.
    assert.equal(pushed.exitCode, 0, `${pushed.stderr}\n${platform.output().slice(-8000)}`);
    assert.equal((await platform.call("PUT", "/v1/projects/live/scale", { replicas })).status, 200);
    await allAnswer();
    assert.deepEqual(
      (await replicasOn()).toSorted((one, other) => one - other),
      [1, 1, 2],
    );
    await eventually(async () => (await statusOfMachines()).join() === ",ok", "the check of machines is ok");
  });

  test("a drained machine hands over its replicas without a lost request, and can be used again", async (t) => {
    const traffic = startTraffic(platform.edgePort, ["live"], 50);
    t.after(() => traffic.stop());
    await berth("drain", machine(2).address);
    await eventually(async () => (await replicasOn())[2] === 0, "nothing runs on the drained machine");
    await allAnswer();
    await berth("use", machine(2).address);
    await live.commit(liveApp({ version: "v2" }));
    const pushed = await live.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    await eventually(async () => ((await replicasOn())[2] ?? 0) > 0, "the machine has replicas again");
    const answers = await traffic.stop();
    t.diagnostic(summary(answers));
    assert.deepEqual(failures(answers, (body) => /^v\d$/.test(body)).slice(0, 5), []);
  });

  test("only a drained machine can be removed, and only with confirmation", async () => {
    const { address } = machine(2);
    const refused = await operator.berth(["machines", "remove", address, "--yes"]);
    assert.match(refused.stderr, /is not drained/);
    await berth("drain", address);
    await eventually(async () => (await replicasOn())[2] === 0, "nothing runs on the drained machine");
    const asked = await operator.berth(["machines", "remove", address]);
    assert.deepEqual([asked.exitCode, (await listed()).length], [2, 3]);
    assert.match(asked.stderr, /Nothing runs there, and no storage is bound to it\./);
    await berth("remove", address, "--yes");
    assert.equal((await listed()).length, 2);
    await allAnswer();
  });

  test("the status reports a lost machine, its replicas start elsewhere, and the machine can be removed", async () => {
    const { address, name } = machine(1);
    await machine(1).connect(false);
    await eventually(async () => (await replicasOn()).join() === "4,0", "all replicas run on the remaining machine");
    await allAnswer();
    await eventually(
      async () =>
        (await statusOfMachines()).some(([subject, status]) => subject === `${name} (${address})` && status === "fail"),
      "the status names the machine",
    );
    await berth("remove", address, "--yes");
    await eventually(async () => (await statusOfMachines()).join() === ",ok", "the check of machines is ok");
  });
});
