// Drawn with other edge files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { removeEdge } from "../src/features/routes/routes.ts";
import { silentLog } from "../src/kit/log.ts";
import { identify, isAlive } from "../src/kit/processes.ts";
import { until } from "../src/kit/until.ts";
import type { CertificateTable, Edge, RouteTable } from "../src/ports/edge.ts";
import { createDriver } from "../src/reconcile/driver.ts";
import { edgeId, edgeTask } from "../src/reconcile/edge/edge-task.ts";
import { createTestEdge, edgePid, servingPid, withoutHaproxy } from "./support/edges.ts";
import { guardMs } from "./support/eventually.ts";
import { freePort } from "./support/free-port.ts";
import { startReleasePlatform, type ReleasePlatform, type ReleaseProject } from "./support/releases.ts";

// A real edge process that fails at the instant of the switch. Applications answer with the id of their deployment.
const agreeWithinMs = 30_000;
let folder: string;
let port: number;
let edge: Edge;
let platform: ReleasePlatform;
let project: ReleaseProject;
let hostname: string;
let targets = "";
let atSwitch: (() => Promise<void>) | undefined;

describe("a switch", { skip: withoutHaproxy }, () => {
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-edge-confirmation-"));
    port = await freePort();
    edge = createTestEdge({ listenPort: port, stateDir: folder });
    platform = await startReleasePlatform({ edge: trapped(edge) });
  });
  after(async () => {
    await platform.close();
    await edge.stop(0);
    await rm(folder, { recursive: true, force: true });
  });
  beforeEach(async () => {
    confirmWithin(5000);
    project = await platform.servingProject();
    const row = await platform.platform.db
      .selectFrom("project")
      .select("hostname")
      .where("id", "=", project.owner.project_id)
      .executeTakeFirstOrThrow();
    hostname = row.hostname;
    await agrees();
  });

  /** Wraps the edge: runs `atSwitch` just before the edge receives a table that moves the project's requests to other replicas. */
  function trapped(real: Edge): Edge {
    return Object.assign(Object.create(real) as Edge, {
      async apply(table: RouteTable) {
        const now = JSON.stringify(table.routes.find((route) => route.hostname === hostname)?.targets ?? []);
        const moves = now !== "[]" && targets !== "[]" && now !== targets;
        targets = now;
        const trap = atSwitch;
        if (moves && trap !== undefined) {
          atSwitch = undefined;
          await trap();
        }
        return real.apply(table);
      },
      applyCertificates: (table: CertificateTable) => real.applyCertificates(table),
      openRequests: () => real.openRequests(),
      measure: () => real.measure(),
      wakeBy: (wake: Parameters<Edge["wakeBy"]>[0]) => real.wakeBy(wake),
      reportRequests: (note: Parameters<Edge["reportRequests"]>[0]) => real.reportRequests(note),
    });
  }

  test("a frozen edge: a push reports live only if the edge serves the deployment, and edge and rows agree within 30 seconds", async () => {
    atSwitch = async () => void process.kill(servingPid(folder), "SIGSTOP");
    await pushAndCompare();
  });

  test("a killed edge: a push reports live only if the edge serves the deployment, and edge and rows agree within 30 seconds", async () => {
    atSwitch = async () => {
      const worker = identify(servingPid(folder));
      assert.ok(worker);
      process.kill(edgePid(folder), "SIGKILL");
      // The worker outlives its main process for a moment, in which it would still confirm.
      assert.ok(await until(() => !isAlive(worker) || undefined, { timeoutMs: guardMs }));
    };
    await pushAndCompare();
  });

  test("an edge that cannot start: the push fails with edge_unavailable, the previous deployment stays active and is served again", async () => {
    const squatter = createServer((socket) => socket.destroy());
    atSwitch = async () => {
      process.kill(edgePid(folder), "SIGKILL");
      const listening = await until(() => listen(squatter), { timeoutMs: guardMs, atMostMs: 5 });
      assert.ok(listening, "the test could not listen on the edge's port");
    };
    const { accepted } = await project.push();
    assert.equal(accepted, false);
    const [failed, kept] = await project.deployments();
    assert.deepEqual([failed?.status, failed?.failure?.code, kept?.status], ["failed", "edge_unavailable", "active"]);
    await new Promise<void>((resolve) => squatter.close(() => resolve()));
    assert.equal(await agrees(), kept?.id);
    confirmWithin(guardMs);
    assert.equal((await project.push()).accepted, true);
    assert.equal(await visit(), (await project.deployments())[0]?.id);
  });

  test("two edges on one database: a push fails while one edge is behind, and succeeds once both serve the deployment", async () => {
    const secondFolder = await mkdtemp(join(tmpdir(), "berth-second-edge-"));
    const secondPort = await freePort();
    const second = createTestEdge({ listenPort: secondPort, stateDir: secondFolder });
    const rows = platform.platform;
    const secondPlatform = { ...rows, machine: "second", ports: { ...rows.ports, edge: second } };
    const newDriver = () => createDriver({ tasks: [edgeTask(secondPlatform)], wakeups: rows.wakeups, log: silentLog });
    const [absent, present] = [newDriver(), newDriver()];
    try {
      await absent.start();
      await absent.stop();
      assert.equal((await project.push()).accepted, false, "the second edge did not confirm");
      const [failed, kept] = await project.deployments();
      assert.deepEqual([failed?.failure?.code, kept?.status], ["edge_unavailable", "active"]);
      await present.start();
      confirmWithin(guardMs);
      assert.equal((await project.push()).accepted, true);
      const [live] = await project.deployments();
      assert.deepEqual([await visit(), await visit(secondPort)], [live?.id, live?.id]);
    } finally {
      await present.stop();
      await second.stop(0);
      await removeEdge(rows.db, edgeId("second", second));
      await rm(secondFolder, { recursive: true, force: true });
    }
  });
});

/** Sets the time limit of confirmations: short in tests without a confirmation, long in others because a busy machine is slow. */
function confirmWithin(edgeConfirmMs: number): void {
  Object.assign(platform.platform.settings, { edgeConfirmMs });
}

async function pushAndCompare(): Promise<void> {
  const { accepted } = await project.push();
  const [newest] = await project.deployments();
  assert.equal(newest?.status, accepted ? "active" : "failed");
  if (accepted) assert.equal(await visit(), newest?.id);
  else assert.equal(newest?.failure?.code, "edge_unavailable");
  await agrees();
}

/** Waits until the edge serves the active deployment, whose id it returns. */
async function agrees(): Promise<string> {
  const active = (await project.deployments()).find(({ status }) => status === "active")?.id;
  let last: string | undefined;
  const isServed = async () => ((last = await visit(port, 1000).catch(String)) === active ? true : undefined);
  assert.ok(
    await until(isServed, { timeoutMs: agreeWithinMs }),
    `the edge serves ${last}, but deployment ${active} is active`,
  );
  return active ?? "";
}

function visit(at = port, timeout = guardMs): Promise<string> {
  return new Promise((resolve, reject) => {
    const asking = request({ host: "127.0.0.1", port: at, headers: { host: hostname }, agent: false, timeout });
    asking.on("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        resolve(response.statusCode === 200 ? Buffer.concat(chunks).toString("utf8") : String(response.statusCode));
      });
    });
    asking.on("timeout", () => asking.destroy(new Error("no answer")));
    asking.on("error", reject).end();
  });
}

async function listen(server: ReturnType<typeof createServer>): Promise<true | undefined> {
  return new Promise((resolve) => {
    server.once("error", () => resolve(undefined));
    server.listen(port, "127.0.0.1", () => resolve(true));
  });
}
