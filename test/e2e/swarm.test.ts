// Runs alone: engines with the fixed ports of a swarm, and requests of which none may be lost.
import assert from "node:assert/strict";
import { after, before, describe, test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { provideImage } from "../../tools/images/provide-image.ts";
import { runsAll } from "../support/draw-cases.ts";
import { withoutDocker } from "../support/docker-engine.ts";
import { edgeLacks, edgePid } from "../support/edges.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { startMachines, type TestMachine, type TestMachines } from "../support/machines.ts";
import { missingCluster, startTestCluster, type TestCluster } from "../support/postgres-cluster.ts";
import { withoutRegistry } from "../support/registry.ts";
import { liveApp } from "./apps.ts";
import { startMember, type Member } from "./members.ts";
import { createApp, startPlatform, type TestApp, type TestPlatform } from "./platform.ts";
import { ask, failures, startAsking, startTraffic, type Answer } from "./traffic.ts";

const skip =
  withoutDocker ||
  withoutRegistry ||
  missingCluster ||
  edgeLacks("haproxy") ||
  (!runsAll && "SKIPPED: a Docker Swarm takes minutes; npm test -- --all runs it");
const replicas = 4;
const perSecond = 40;
const cutMs = 12_000;
/** Every third one is a rollback. */
const changes = 20;

/**
 * Three machines, each with an engine that manages their swarm and a control plane: the first with the primary and an edge, the second with
 * an edge, the third without. PostgreSQL is elsewhere.
 */
describe("a platform on a Docker Swarm", { skip }, () => {
  let cluster: TestMachines;
  let postgres: TestCluster;
  let primary: TestPlatform;
  let second: Member;
  let third: Member;
  let live: TestApp;
  let version = 1;
  const machine = (index: 0 | 1 | 2) => cluster.machines[index] as TestMachine;
  const firstEdge = () => ({ host: machine(0).address, port: primary.edgePort });
  const secondEdge = () => ({ host: machine(1).address, port: second.edgePort });

  before(async () => {
    cluster = await startMachines(3, "managers");
    postgres = await startTestCluster(cluster.address);
    const { user, password, primary: server } = postgres;
    await server.query("create database berth");
    const shared = {
      BERTH_DATABASE_URL: `postgresql://${user}:${password}@${server.host}:${server.port}/berth`,
      BERTH_EDGE: "haproxy",
    };
    primary = await startPlatform({
      ...{ ...shared, BERTH_LISTEN: machine(0).address },
      ...{ BERTH_RUNTIME: "swarm", BERTH_DOCKER_SOCKET: machine(0).socket },
      BERTH_NODE_IMAGE: await provideImage(machine(0).socket, "node"),
      BERTH_SWARM_REGISTRY_PORT: String(await freePort()),
    });
    const settings = { ...shared, BERTH_KEY_FILE: `${primary.dataDir}/secrets.key` };
    const on = (index: 0 | 1 | 2, roles: string) =>
      startMember(roles, { ...settings, BERTH_LISTEN: machine(index).address }, machine(index));
    second = await on(1, "api,reconcile,edge");
    third = await on(2, "api,reconcile");
    live = await createApp(primary, "live", liveApp({ version: "v1" }));
    await primary.call("PUT", "/v1/projects/live/settings", { storage: false });
  });
  after(async () => {
    for (const member of [third, second]) await member?.end();
    await primary?.destroy();
    await postgres?.remove();
    await cluster?.close();
  });

  /** Replicas that answer through this edge. */
  const seen = async (edge = firstEdge()) => {
    const answers = await Promise.all(Array.from({ length: 6 * replicas }, () => ask(edge, "live", "/replica")));
    return new Set(answers.flatMap(({ status, body }) => (status === 200 ? [body] : []))).size;
  };
  const deploy = async () => {
    version += 1;
    await live.commit(liveApp({ version: `v${version}` }));
    const pushed = await live.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
  };
  const allAnswer = () => eventually(async () => (await seen()) === replicas, "all replicas answer");
  const allManage = () =>
    eventually(async () => {
      const nodes = await machine(0)
        .api.call<readonly { ManagerStatus?: { Reachability?: string }; Status: { State: string } }[]>({
          path: "/nodes",
        })
        .catch(() => []);
      return (
        nodes.filter((each) => each.ManagerStatus?.Reachability === "reachable" && each.Status.State === "ready")
          .length === 3
      );
    }, "three machines manage the swarm");

  /** GETs through both edges while `work` runs; none may fail but those at the second edge while `work` has it away. */
  async function underLoad(t: TestContext, work: (away: Away) => Promise<void>): Promise<void> {
    const away: Away = { from: Number.POSITIVE_INFINITY, to: Number.NEGATIVE_INFINITY };
    const edges = [firstEdge(), secondEdge()];
    const fromEdges = edges.map((edge) => startTraffic(edge, ["live"], perSecond));
    // One who knows both edges asks the other where one does not answer, as browsers do with two addresses of a name.
    const visitor = startAsking(async (index) => {
      const answer = await ask(edges[index % 2] as (typeof edges)[number], "live", "/");
      return answer.error === null ? answer : ask(edges[(index + 1) % 2] as (typeof edges)[number], "live", "/");
    }, perSecond / 4);
    const stop = () => Promise.all([...fromEdges, visitor].map((each) => each.stop()));
    t.after(stop);
    await work(away);
    const [ofFirst = [], ofSecond = [], ofVisitor = []] = await stop();
    const isAway = ({ atMs }: Answer) => atMs >= away.from && atMs <= away.to;
    const counted = [ofFirst, ofSecond.filter((each) => !isAway(each)), ofVisitor];
    t.diagnostic(`${counted.map(({ length }) => length).join(" + ")} requests (first edge, second edge, either)`);
    assert.deepEqual(
      counted.map((answers) => failures(answers, (body) => /^v\d+$/.test(body)).slice(0, 5)),
      [[], [], []],
    );
  }

  /** How long it takes after `loss` until all replicas answer. */
  async function timed(t: TestContext, what: string, loss: () => Promise<void>): Promise<void> {
    const begun = Date.now();
    await loss();
    await allAnswer();
    t.diagnostic(`${what}: all replicas answered after ${((Date.now() - begun) / 1000).toFixed(1)} s`);
  }

  test("says what isolates replicas, and that a swarm runs them", async () => {
    const isolated = async () => {
      const { body } = await primary.call<{
        platform: { runtime: string; isolation: string[]; missing: { part: string }[] };
      }>("GET", "/v1/me");
      assert.equal(body.platform.runtime, "swarm");
      // Read off the guard, which may not run yet.
      if (!body.platform.isolation.includes("no_new_privileges")) return undefined;
      return body.platform.missing.map(({ part }) => part);
    };
    assert.deepEqual(await eventually(isolated, "the guard runs"), ["private_app_folder"]);
  });

  test("a push goes live on all machines", async () => {
    const pushed = await live.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    assert.equal((await primary.call("PUT", "/v1/projects/live/scale", { replicas })).status, 200);
    await allAnswer();
    assert.equal(await seen(secondEdge()), replicas);
    const { body } = await primary.call<{ machines: { replicas: number }[] }>("GET", "/v1/platform/machines");
    assert.deepEqual(
      body.machines.map((each) => each.replicas).toSorted((one, other) => one - other),
      [1, 1, 2],
    );
  });

  test("control planes are killed, the primary among them", async (t) => {
    await underLoad(t, async () => {
      await primary.end("SIGKILL");
      await second.kill();
      await third.kill();
      await sleep(5000);
      await Promise.all([second.begin(), third.begin()]);
      await primary.restart();
      await deploy();
      await allAnswer();
    });
  });

  test("an edge is killed with its control plane, and a deployment goes live without it", async (t) => {
    await underLoad(t, async (away) => {
      away.from = Date.now();
      await second.kill();
      killEdge(second);
      await deploy();
      await second.begin();
      await eventually(async () => (await seen(secondEdge())) === replicas, "the second edge serves");
      away.to = Date.now();
      await deploy();
    });
  });

  test("an engine is killed", async (t) => {
    await underLoad(t, async () => {
      await timed(t, "an engine killed", () => machine(1).end("SIGKILL"));
      await sleep(cutMs);
      await timed(t, "and started again", () => machine(1).begin());
      await allManage();
      await deploy();
      await allAnswer();
    });
  });

  test("a machine that leads the swarm is lost", async (t) => {
    await underLoad(t, async () => {
      await timed(t, "the leader's machine lost", async () => {
        await machine(2).connect(false);
        await machine(2).lose();
      });
      await machine(2).connect(true);
      await machine(2).begin();
      await allManage();
      await deploy();
      await allAnswer();
    });
  });

  test(`a machine is cut off for ${cutMs / 1000} s`, async (t) => {
    await underLoad(t, async () => {
      const begun = Date.now();
      await timed(t, "a machine cut off", () => machine(2).connect(false));
      await eventually(() => Date.now() - begun > cutMs, "the cut is over");
      await timed(t, "and back", () => machine(2).connect(true));
      await allManage();
      await deploy();
      await allAnswer();
    });
  });

  test(`${changes} deploys and rollbacks`, async (t) => {
    await underLoad(t, async () => {
      for (let change = 1; change <= changes; change += 1) {
        if (change % 3 !== 0) await deploy();
        else assert.equal((await primary.call("POST", "/v1/projects/live/rollback")).status, 200);
      }
      await allAnswer();
    });
  });
});

/** Between these times, of `Date.now()`, nobody expects an answer of the second edge. */
interface Away {
  from: number;
  to: number;
}

function killEdge({ dataDir }: Member): void {
  const pid = edgePid(`${dataDir}/haproxy`);
  // HAProxy's main process and its worker are one process group.
  process.kill(-pid, "SIGKILL");
}
