import { readFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { pathsIn } from "../../src/daemon/config.ts";
import type { EdgeAddress } from "../../src/ports/edge-attack.suite.ts";
import { createApp, nodeApp, startPlatform, type TestApp, type TestPlatform } from "../../test/e2e/platform.ts";
import { servingPid } from "../../test/support/edges.ts";
import { p99, visitFromOwnThread } from "./visitor.ts";
import { countRow, goalRow, timeRow, type BenchRow } from "./row.ts";

const readers = 200;
const quietMs = 15_000;
const attackedMs = 30_000;
const p99Goal = 5;
const memoryGoalMb = 300;

/**
 * Sends 50 requests a second to an application of a whole platform, alone and beside three attacking projects: one sends hostile responses,
 * one floods 200 clients that do not read, one is pushed repeatedly and leaves a file of 12 TiB in its build.
 */
export async function measureCombinedAttack(): Promise<BenchRow[]> {
  const platform = await startPlatform();
  let attacker: Worker | undefined;
  try {
    const huge = await startApps(platform);
    const edge: EdgeAddress = { host: "127.0.0.1", port: platform.edgePort, over: "http" };
    const { haproxy } = pathsIn(platform.dataDir);
    const pid = servingPid(haproxy);
    const quiet = await visitFromOwnThread({ edge, host: "neighbour.localhost", forMs: quietMs });
    attacker = new Worker(new URL("edge-attacker.ts", import.meta.url), { workerData: { edge, readers } });
    const [attacked, builds] = await Promise.all([
      visitFromOwnThread({ edge, host: "neighbour.localhost", forMs: attackedMs }),
      buildUntil(huge, performance.now() + attackedMs),
    ]);
    if (servingPid(haproxy) !== pid) throw new Error("The edge was started again.");
    const beside = `hostile answers, ${readers} clients that do not read and ${builds} builds of 12 TiB`;
    const asked = attacked.latenciesMs.length + attacked.failures.length;
    return [
      countRow(`edge, failed requests of a neighbour beside ${beside}`, `${asked}`, attacked.failures.length),
      timeRow("edge, its p99 beside them", "its quiet p99", { ours: p99(attacked), theirs: p99(quiet), goal: p99Goal }),
      goalRow("edge, peak memory beside them", peakMemoryMb(pid), { goal: memoryGoalMb, unit: "MB" }),
    ];
  } finally {
    await attacker?.terminate();
    await platform.destroy();
  }
}

function peakMemoryMb(pid: number): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
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
