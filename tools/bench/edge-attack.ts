import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { createBuiltinEdge } from "../../src/adapters/edge-builtin/builtin-edge.ts";
import { readRecord } from "../../src/adapters/edge-builtin/edge-record.ts";
import { silentLog } from "../../src/kit/log.ts";
import { visitNeighbour, type EdgeAddress, type Visits } from "../../src/ports/edge-attack.suite.ts";
import { route } from "../../src/ports/edge-stage.suite.ts";
import type { Target } from "../../src/ports/edge.ts";
import type { AttackPlan } from "./edge-attacker.ts";
import { separateProcessors } from "./pin.ts";
import { memoryRow, timeRow, type BenchRow } from "./row.ts";

const host = "127.0.0.1";
const measureMs = 10_000;
const p99Goal = 5;
const memoryGoalMb = 300;

/** Attacks the built-in edge with hostile responses and clients that do not read, and visits an innocent application meanwhile. */
export async function measureEdgeUnderAttack(): Promise<BenchRow[]> {
  return [...(await attack(40)), ...(await attack(200))];
}

async function attack(readers: number): Promise<BenchRow[]> {
  const stateDir = await mkdtemp(join(tmpdir(), "berth-bench-attack-"));
  const edge = createBuiltinEdge({ listenHost: host, listenPort: 0, stateDir, log: silentLog });
  const app = createServer((_request, response) => void response.end("fine")).listen(0, host);
  const attacker = new Worker(new URL("edge-attacker.ts", import.meta.url), {
    workerData: { readers } satisfies AttackPlan,
  });
  let rejoin: (() => Promise<void>) | undefined;
  try {
    const [[flood, bad]] = (await once(attacker, "message")) as [[Target, Target]];
    const hosts = {
      "good.test": { host, port: (app.address() as AddressInfo).port },
      "flood.test": flood,
      "bad.test": bad,
    };
    const routes = Object.entries(hosts).map(([hostname, target]) => route(hostname, [target]));
    await edge.apply({ version: 1, routes, challenge: null });
    const { port, identity } = readRecord(stateDir) as NonNullable<ReturnType<typeof readRecord>>;
    const address: EdgeAddress = { host, port, over: "http" };
    rejoin = await separateProcessors(identity.pid);
    const quiet = await visitNeighbour(address, "good.test", measureMs);
    attacker.postMessage(address);
    const attacked = await visitNeighbour(address, "good.test", measureMs);
    if (attacked.failures.length > 0) throw new Error(`The neighbour's requests failed: ${attacked.failures[0]}`);
    const against = `hostile answers and ${readers} clients that do not read`;
    return [
      timeRow(`edge, p99 of a neighbour beside ${against}`, "its quiet p99", {
        ...{ ours: p99(attacked), theirs: p99(quiet), goal: p99Goal },
      }),
      memoryRow(`edge, peak memory under ${against}`, `${memoryGoalMb} MB`, {
        ...{ ours: peakMemoryMb(identity.pid), theirs: memoryGoalMb, goal: 1 },
      }),
    ];
  } finally {
    await attacker.terminate();
    await rejoin?.();
    app.close();
    app.closeAllConnections();
    await edge.stop(0);
    await rm(stateDir, { recursive: true, force: true });
  }
}

export function p99({ latenciesMs }: Visits): number {
  return latenciesMs[Math.floor(latenciesMs.length * 0.99)] ?? Number.NaN;
}

export function peakMemoryMb(pid: number): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}
