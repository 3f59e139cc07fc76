import { createApp, nodeApp, startPlatform } from "../../test/e2e/platform.ts";
import { visitNeighbour } from "../../src/ports/edge-attack.suite.ts";
import { p99 } from "./edge-attack.ts";
import { timeRow, type BenchRow } from "./row.ts";

const quietMs = 10_000;
const attackedMs = 30_000;
const p99Goal = 5;

/** Asks an application 50 times a second, alone and beside builds of another project that leave a file of 12 TiB. */
export async function measureHugeBuild(): Promise<BenchRow[]> {
  const platform = await startPlatform({});
  try {
    const neighbour = await createApp(platform, "neighbour", nodeApp("fine"));
    const huge = await createApp(platform, "huge", {
      ...nodeApp("huge"),
      "package.json": JSON.stringify({ name: "huge", private: true, scripts: { build: "truncate -s 12T big" } }),
    });
    const served = await neighbour.push();
    if (served.exitCode !== 0) throw new Error(served.stderr);
    const edge = { host: "127.0.0.1", port: platform.edgePort, over: "http" } as const;
    const quiet = await visitNeighbour(edge, "neighbour.localhost", quietMs);
    const visits = visitNeighbour(edge, "neighbour.localhost", attackedMs);
    const pushed = await huge.push();
    const beside = await visits;
    if (!/left files of more than/.test(pushed.stderr)) throw new Error(`The build ended otherwise: ${pushed.stderr}`);
    if (beside.failures.length > 0) throw new Error(`The neighbour's requests failed: ${beside.failures[0]}`);
    return [
      timeRow("p99 of a neighbour beside a build of 12 TiB", "its quiet p99", {
        ...{ ours: p99(beside), theirs: p99(quiet), goal: p99Goal },
      }),
    ];
  } finally {
    await platform.destroy();
  }
}
