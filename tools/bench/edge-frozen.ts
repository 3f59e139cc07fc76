import { readFileSync } from "node:fs";
import { get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { findProgram } from "../../src/daemon/setup/find-program.ts";
import { start } from "../../src/kit/exec.ts";
import { until } from "../../src/kit/until.ts";
import { pathsIn } from "../../src/daemon/config.ts";
import { createApp, nodeApp, startPlatform, type TestPlatform } from "../../test/e2e/platform.ts";
import { servingPid } from "../../test/support/edges.ts";
import { goalRow, median, type BenchRow } from "./row.ts";

const rounds = 5;
const everyMs = 20;
const outageGoalMs = 2000;
const longestMs = 60_000;
const gdb = findProgram("gdb", "");

/**
 * Freezes the process that serves visitors while they send 50 requests a second: by SIGSTOP, and by a debugger that holds it (if gdb is
 * installed), which no SIGCONT ends.
 */
export async function measureFrozenEdge(): Promise<BenchRow[]> {
  const platform = await startPlatform();
  try {
    const app = await createApp(platform, "frozen", nodeApp("fine"));
    const pushed = await app.push();
    if (pushed.exitCode !== 0) throw new Error(pushed.stderr);
    const ways = [
      { name: "stopped by SIGSTOP", freeze: async (pid: number) => void process.kill(pid, "SIGSTOP") },
      ...(gdb === null ? [] : [{ name: "held by a debugger", freeze: holdWithDebugger }]),
    ];
    const rows: BenchRow[] = [];
    for (const { name, freeze } of ways) {
      const outages: Outage[] = [];
      for (let round = 0; round < rounds; round += 1)
        outages.push(await measureOutage(platform, async () => freeze(await findServing(platform))));
      const failed = outages.reduce((sum, each) => sum + each.failed, 0);
      const asked = outages.reduce((sum, each) => sum + each.asked, 0);
      const typical = Math.round(median(outages.map(({ ms }) => ms)));
      const what = `edge, ${name}: longest of ${rounds} outages (median ${typical} ms, ${failed} of ${asked} requests failed)`;
      rows.push(goalRow(what, Math.max(...outages.map(({ ms }) => ms)), { goal: outageGoalMs, unit: "ms" }));
    }
    return rows;
  } finally {
    await platform.destroy();
  }
}

/** Resolves with the process that serves visitors. Its record may appear a moment after its first response. */
async function findServing({ dataDir }: TestPlatform): Promise<number> {
  const find = () => {
    try {
      return servingPid(pathsIn(dataDir).haproxy) || undefined;
    } catch {
      return undefined;
    }
  };
  const pid = await until(find, { timeoutMs: longestMs });
  if (pid === undefined) throw new Error("No process serves visitors.");
  return pid;
}

interface Outage {
  /** The time from the freeze to the first response to a request sent after it. */
  readonly ms: number;
  readonly asked: number;
  readonly failed: number;
}

async function measureOutage(platform: TestPlatform, freeze: () => Promise<void>): Promise<Outage> {
  let frozenAt = Number.POSITIVE_INFINITY;
  let servedAt: number | undefined;
  const visits: Promise<boolean>[] = [];
  const visit = async () => {
    const startedAt = performance.now();
    const isServed = await ask(platform.edgePort);
    if (isServed && startedAt > frozenAt) servedAt ??= performance.now();
    return isServed;
  };
  const timer = setInterval(() => visits.push(visit()), everyMs);
  let isOver: number | undefined;
  try {
    await sleep(1000);
    await freeze();
    frozenAt = performance.now();
    isOver = await until(() => servedAt, { timeoutMs: longestMs, atMostMs: 20 });
    await sleep(1000);
  } finally {
    clearInterval(timer);
  }
  const outcomes = await Promise.all(visits);
  if (isOver === undefined) throw new Error(`Nobody was served for ${longestMs / 1000} s.`);
  return { ms: isOver - frozenAt, asked: outcomes.length, failed: outcomes.filter((isServed) => !isServed).length };
}

function ask(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const headers = { host: "frozen.localhost" };
    const request = get({ host: "127.0.0.1", port, headers, agent: false, timeout: longestMs });
    request.once("timeout", () => request.destroy());
    request.once("error", () => resolve(false));
    request.once("response", (response) => {
      response.once("error", () => resolve(false)).resume();
      response.once("end", () => resolve(response.statusCode === 200));
    });
  });
}

/** Resolves once the debugger holds the process, until the debugger ends. */
async function holdWithDebugger(pid: number): Promise<void> {
  const quick = ["--nx", "--batch", "-iex", "set auto-solib-add off", "-iex", "set debuginfod enabled off"];
  start({ file: gdb as string, args: [...quick, "-p", `${pid}`, "-ex", "shell sleep 60"] }).unref();
  const isHeld = () => (/\) t /.test(readFileSync(`/proc/${pid}/stat`, "utf8")) ? true : undefined);
  if ((await until(isHeld, { timeoutMs: longestMs, atMostMs: 10 })) === undefined)
    throw new Error("gdb does not hold it.");
}
