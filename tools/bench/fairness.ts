import { setTimeout as sleep } from "node:timers/promises";
import { createApp, nodeApp, startPlatform, type TestApp, type TestPlatform } from "../../test/e2e/platform.ts";
import { median, timeRow, type BenchRow } from "./row.ts";

const clients = 200;
const pushes = 20;
const pauseMs = 1000;
const quietMs = 10_000;

/** Measures how long 200 clients, each sending one request a second, wait for the API: alone, and beside 20 concurrent pushes. */
export async function measureFairness(): Promise<BenchRow[]> {
  const settings = { BERTH_READS_PER_MINUTE: "1000000", BERTH_WRITES_PER_MINUTE: "1000000", BERTH_ON_STOP: "stop" };
  const platform = await startPlatform(settings);
  try {
    const apps: TestApp[] = [];
    for (let number = 0; number < pushes; number += 1)
      apps.push(await createApp(platform, `fair-${number}`, nodeApp(`fair ${number}`)));
    const alone = await askUntil(platform, sleep(quietMs));
    const pushing = Promise.all(apps.map((app) => app.push()));
    const beside = await askUntil(platform, pushing);
    const failed = (await pushing).filter(({ exitCode }) => exitCode !== 0);
    if (failed.length > 0) throw new Error(`${failed.length} pushes failed: ${failed[0]?.stderr}`);
    const rows = [0.5, 0.99].map((share) =>
      timeRow(
        `answer to one of ${clients} clients beside ${pushes} pushes, ${share * 100} %`,
        "the same without pushes",
        {
          ours: quantile(beside, share),
          theirs: quantile(alone, share),
          goal: null,
        },
      ),
    );
    return rows;
  } finally {
    await platform.destroy();
  }
}

/** Lets the clients send requests until `over` has settled; resolves with the time of each response. */
async function askUntil(platform: TestPlatform, over: Promise<unknown>): Promise<number[]> {
  let isOver = false;
  void over.finally(() => (isOver = true));
  const waits: number[] = [];
  const visit = async () => {
    await sleep(Math.random() * pauseMs);
    while (!isOver) {
      const from = performance.now();
      await platform.call("GET", "/v1/projects");
      waits.push(performance.now() - from);
      await sleep(pauseMs);
    }
  };
  await Promise.all(Array.from({ length: clients }, visit));
  return waits;
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return share === 0.5 ? median(values) : (sorted[Math.floor(sorted.length * share)] as number);
}
