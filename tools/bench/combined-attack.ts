import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { pathsIn } from "../../src/daemon/config.ts";
import type { EdgeAddress } from "../../src/ports/edge-attack.suite.ts";
import type { Edge } from "../../src/ports/edge.ts";
import { createApp, nodeApp, startPlatform, type TestApp, type TestPlatform } from "../../test/e2e/platform.ts";
import { edgeLacks, servingPid } from "../../test/support/edges.ts";
import { p99, peakMemoryMb } from "./edge-attack.ts";
import type { AttackPlan } from "./edge-attacker.ts";
import { visitFromOwnThread } from "./visitor.ts";
import { countRow, memoryRow, timeRow, type BenchRow } from "./row.ts";

const readers = 200;
const quietMs = 15_000;
const attackedMs = 30_000;
const p99Goal = 5;
const memoryGoalMb = 300;

/**
 * Sends 50 requests a second to an application of a whole platform, alone and beside three attacking projects: one sends hostile responses,
 * one floods 200 clients that do not read, one is pushed repeatedly and leaves a file of 12 TiB in its build. Measures both edges.
 */
export async function measureCombinedAttack(): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  for (const kind of ["builtin", "haproxy"] as const) if (!edgeLacks(kind)) rows.push(...(await attack(kind)));
  return rows;
}

async function attack(kind: Edge["kind"]): Promise<BenchRow[]> {
  const platform = await startPlatform({ BERTH_EDGE: kind });
  const plan: AttackPlan = { readers, hosts: { bad: "bad.localhost", flood: "flood.localhost" } };
  const attacker = new Worker(new URL("edge-attacker.ts", import.meta.url), { workerData: plan });
  try {
    await once(attacker, "message");
    const huge = await startApps(platform);
    const edge: EdgeAddress = { host: "127.0.0.1", port: platform.edgePort, over: "http" };
    const pid = servingPid(kind, edgeFolder(kind, platform.dataDir));
    const quiet = await visitFromOwnThread({ edge, host: "neighbour.localhost", forMs: quietMs });
    attacker.postMessage(edge);
    const [attacked, builds] = await Promise.all([
      visitFromOwnThread({ edge, host: "neighbour.localhost", forMs: attackedMs }),
      buildUntil(huge, performance.now() + attackedMs),
    ]);
    if (servingPid(kind, edgeFolder(kind, platform.dataDir)) !== pid) throw new Error("The edge was started again.");
    const beside = `hostile answers, ${readers} clients that do not read and ${builds} builds of 12 TiB`;
    const asked = attacked.latenciesMs.length + attacked.failures.length;
    return [
      countRow(`edge ${kind}, failed requests of a neighbour beside ${beside}`, `${asked}`, attacked.failures.length),
      timeRow(`edge ${kind}, its p99 beside them`, "its quiet p99", {
        ...{ ours: p99(attacked), theirs: p99(quiet), goal: p99Goal },
      }),
      memoryRow(`edge ${kind}, peak memory beside them`, `${memoryGoalMb} MB`, {
        ...{ ours: peakMemoryMb(pid), theirs: memoryGoalMb, goal: 1 },
      }),
    ];
  } finally {
    await attacker.terminate();
    await platform.destroy();
  }
}

/** Returns the state folder of a platform's edge. */
export function edgeFolder(kind: Edge["kind"], dataDir: string): string {
  const { edge, haproxy } = pathsIn(dataDir);
  return kind === "builtin" ? edge : haproxy;
}

/** Pushes the neighbour and both attackers; resolves with the project for the builds. */
async function startApps(platform: TestPlatform): Promise<TestApp> {
  const pushed = [
    await createApp(platform, "neighbour", nodeApp("fine")),
    await createApp(platform, "bad", attackApp("hostile")),
    await createApp(platform, "flood", attackApp("flood")),
  ];
  for (const app of pushed) {
    const { exitCode, stderr } = await app.push();
    if (exitCode !== 0) throw new Error(stderr);
  }
  const scripts = { build: "truncate -s 12T big" };
  const manifest = JSON.stringify({ name: "huge", private: true, scripts });
  return createApp(platform, "huge", { ...nodeApp("huge"), "package.json": manifest });
}

function attackApp(what: "hostile" | "flood"): Record<string, string> {
  const scripts = { start: `node tools/bench/attack-app.ts ${what}` };
  const manifest = { name: what, private: true, type: "module", engines: { node: "24" }, scripts };
  const program = new URL("attack-app.ts", import.meta.url);
  const suite = new URL("../../src/ports/edge-attack.suite.ts", import.meta.url);
  return {
    "package.json": JSON.stringify(manifest),
    "tools/bench/attack-app.ts": readFileSync(program, "utf8"),
    "src/ports/edge-attack.suite.ts": readFileSync(suite, "utf8"),
  };
}

/** Pushes repeatedly until the time is over; resolves with the number of pushes. */
async function buildUntil(huge: TestApp, endsAt: number): Promise<number> {
  let builds = 0;
  for (; performance.now() < endsAt; builds += 1) {
    const { stderr } = await huge.push();
    if (!/left files of more than/.test(stderr)) throw new Error(`The build ended otherwise: ${stderr}`);
  }
  return builds;
}
