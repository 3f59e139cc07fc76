import assert from "node:assert/strict";
import { after, before, type TestContext } from "node:test";
import { addressOf, listNodes, type SwarmNode } from "../../src/adapters/runtime-swarm/swarm-api.ts";
import { joinManagers } from "../../src/adapters/runtime-swarm/managers.ts";
import type { Result } from "../../src/contract/routes.ts";
import { provideImage } from "../../tools/images/provide-image.ts";
import { runsAll } from "../support/draw-cases.ts";
import { withoutDocker } from "../support/docker-engine.ts";
import { withoutHaproxy } from "../support/edges.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { enginePort, startMachines, type TestMachine, type TestMachines } from "../support/machines.ts";
import { missingCluster, startTestCluster, type TestCluster } from "../support/postgres-cluster.ts";
import { withoutRegistry } from "../support/registry.ts";
import { liveApp } from "./apps.ts";
import { startMember, type Member } from "./members.ts";
import { createApp, startPlatform, type TestApp, type TestPlatform } from "./platform.ts";
import { ask, failures, startAsking, startTraffic, summary, type Answer } from "./traffic.ts";

/** The reason to skip tests of a platform on a swarm of three machines, or false. */
export const swarmLacks =
  withoutDocker ||
  withoutRegistry ||
  missingCluster ||
  withoutHaproxy ||
  (!runsAll && "SKIPPED: a Docker Swarm takes minutes; npm test -- --all runs it");

export const replicas = 4;
const perSecond = 40;

/** The time during which requests to the second edge may fail, in values of `Date.now()`. */
export interface Away {
  from: number;
  to: number;
}

/**
 * Starts three machines before the tests of the calling suite, and ends them afterwards. Each has a manager of the swarm and a control
 * plane: the first the primary with an edge, the second one with an edge, the third one without. PostgreSQL runs outside of them. `deploy`
 * deploys the project `live` with 4 replicas.
 */
export function swarmOfThree() {
  let cluster: TestMachines;
  let postgres: TestCluster;
  let primary: TestPlatform;
  let second: Member;
  let third: Member;
  let live: TestApp;
  let version = 0;
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
    };
    primary = await startPlatform({
      ...{ ...shared, BERTH_LISTEN: machine(0).address },
      ...{ BERTH_RUNTIME: "swarm", BERTH_DOCKER_SOCKET: machine(0).socket },
      BERTH_SWARM_MANAGERS: [machine(1), machine(2)].map(({ address }) => `${address}:${enginePort}`).join(),
      BERTH_SWARM_CERTIFICATES: cluster.certificates,
      BERTH_BASE_IMAGE: `node=${await provideImage(machine(0).socket, "node")}`,
      BERTH_SWARM_REGISTRY_PORT: String(await freePort()),
    });
    const settings = { ...shared, BERTH_KEY_FILE: `${primary.dataDir}/secrets.key` };
    const on = (index: 0 | 1 | 2, roles: string) =>
      startMember(roles, { ...settings, BERTH_LISTEN: machine(index).address }, machine(index));
    second = await on(1, "api,reconcile,edge");
    third = await on(2, "api,reconcile");
    live = await createApp(primary, "live", {});
    await primary.call("PUT", "/v1/projects/live/settings", { storage: false });
  });
  after(async () => {
    for (const member of [third, second]) await member?.end();
    await primary?.destroy();
    await postgres?.remove();
    await cluster?.close();
  });

  /** Returns the number of replicas that respond through this edge. */
  const seen = async (edge = firstEdge()) => {
    const answers = await Promise.all(Array.from({ length: 6 * replicas }, () => ask(edge, "live", "/replica")));
    return new Set(answers.flatMap(({ status, body }) => (status === 200 ? [body] : []))).size;
  };
  const deploy = async () => {
    version += 1;
    await live.commit(liveApp({ version: `v${version}` }));
    const pushed = await live.push();
    // A push that fails with an internal error has its reason in the platform's log.
    assert.equal(pushed.exitCode, 0, `${pushed.stderr}\n${primary.output().slice(-8000)}`);
  };
  const allAnswer = () => eventually(async () => (await seen()) === replicas, "all replicas respond");
  const replicasOn = async (index: 0 | 1 | 2) => {
    const { body } = await primary.call<Result<"platform.machines">>("GET", "/v1/platform/machines");
    return body.machines.find(({ address }) => address === machine(index).address)?.replicas ?? 0;
  };
  /** Deploys again until this machine runs replicas. A machine that just came back gets none until its guard runs. */
  const occupy = (index: 0 | 1 | 2) =>
    eventually(
      async () => (await replicasOn(index)) > 0 || (await deploy().then(() => false)),
      "the machine runs replicas",
    );
  const nodes = () =>
    listNodes({ managers: joinManagers([machine(0).api, machine(1).api, machine(2).api]) }).catch(() => []);
  const allManage = () =>
    eventually(async () => {
      const isManager = ({ ManagerStatus: manager, Status: status }: SwarmNode) =>
        manager?.Reachability === "reachable" && status.State === "ready";
      return (await nodes()).filter(isManager).length === 3;
    }, "three machines manage the swarm");
  const leader = async () => {
    const found = (await nodes()).find(({ ManagerStatus: manager }) => manager?.Leader === true);
    return cluster.machines.find(({ address }) => found !== undefined && addressOf(found) === address);
  };
  /** Restarts the leader's machine. Returns false, so that the caller checks again which machine leads. */
  const replaceLeader = async () => {
    await (await leader())?.restart("SIGKILL");
    await allManage();
    await allAnswer();
    return false;
  };

  /** Sends requests through both edges during `work`. None may fail, except at the second edge during `away`. */
  async function underLoad(t: TestContext, work: (away: Away) => Promise<void>): Promise<void> {
    const away: Away = { from: Number.POSITIVE_INFINITY, to: Number.NEGATIVE_INFINITY };
    const edges = [firstEdge(), secondEdge()];
    const fromEdges = edges.map((edge) => startTraffic(edge, ["live"], perSecond));
    // A browser that resolves a hostname to both edges tries the other one when a connection fails.
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
    t.diagnostic(`first edge, second edge, either: ${counted.map(summary).join("; ")}`);
    assert.deepEqual(
      counted.map((answers) => failures(answers, (body) => /^v\d+$/.test(body)).slice(0, 5)),
      [[], [], []],
    );
  }

  /** Reports how long it takes after `loss` until all replicas respond. */
  async function timed(t: TestContext, what: string, loss: () => Promise<void>): Promise<void> {
    const begun = Date.now();
    await loss();
    await allAnswer();
    t.diagnostic(`${what}: all replicas answered after ${((Date.now() - begun) / 1000).toFixed(1)} s`);
  }

  return {
    ...{ machine, firstEdge, secondEdge, seen, deploy, occupy, allAnswer, allManage, leader, replaceLeader },
    ...{ underLoad, timed },
    primary: () => primary,
    second: () => second,
    third: () => third,
    /** Deploys the project with all replicas for the tests that follow. */
    async goLive() {
      await deploy();
      assert.equal((await primary.call("PUT", "/v1/projects/live/scale", { replicas })).status, 200);
      await allAnswer();
    },
  };
}
