import type { Visits } from "../../src/ports/edge-attack.suite.ts";
import { createApp, nodeApp, startPlatform, type TestPlatform } from "../../test/e2e/platform.ts";
import { timeRow, type BenchRow } from "./row.ts";
import { p99, visitFromOwnThread } from "./visitor.ts";

const quietMs = 10_000;
const attackedMs = 30_000;
const p99Goal = 5;

/**
 * Sends 50 requests a second to an application, alone and beside builds of another project: one that leaves a file of 12 TiB, and one whose
 * eight processes compute for the whole time.
 */
export async function measureHugeBuild(): Promise<BenchRow[]> {
  const platform = await startPlatform({});
  try {
    const served = await (await createApp(platform, "neighbour", nodeApp("fine"))).push();
    if (served.exitCode !== 0) throw new Error(served.stderr);
    const quiet = await visit(platform, quietMs);
    const huge = { build: "truncate -s 12T big", fails: /left files of more than/, what: "a build of 12 TiB" };
    const busy = { build: `sh -c '${spin}'`, fails: /exit code 124/, what: "a build of eight processes that compute" };
    const rows: BenchRow[] = [];
    for (const { what, ...build } of [huge, busy])
      rows.push(
        timeRow(`p99 of a neighbour beside ${what}`, "its quiet p99", {
          ...{ ours: p99(await visitBeside(platform, build)), theirs: p99(quiet), goal: p99Goal },
        }),
      );
    return rows;
  } finally {
    await platform.destroy();
  }
}

const spin = `for i in 1 2 3 4 5 6 7; do timeout ${attackedMs / 1000} sh -c "while :; do :; done" & done; timeout ${attackedMs / 1000} sh -c "while :; do :; done"`;

interface Attack {
  readonly build: string;
  /** What the push's output must contain at the end. */
  readonly fails: RegExp;
}

let builds = 0;

async function visitBeside(platform: TestPlatform, { build, fails }: Attack): Promise<Visits> {
  const name = `attack${(builds += 1)}`;
  const manifest = JSON.stringify({ name, private: true, scripts: { build } });
  const attacker = await createApp(platform, name, { ...nodeApp(name), "package.json": manifest });
  const [beside, pushed] = await Promise.all([visit(platform, attackedMs), attacker.push()]);
  if (!fails.test(pushed.stderr)) throw new Error(`The build ended otherwise: ${pushed.stderr}`);
  if (beside.failures.length > 0) throw new Error(`The neighbour's requests failed: ${beside.failures[0]}`);
  return beside;
}

function visit({ edgePort: port }: TestPlatform, forMs: number): Promise<Visits> {
  return visitFromOwnThread({ edge: { host: "127.0.0.1", port, over: "http" }, host: "neighbour.localhost", forMs });
}
