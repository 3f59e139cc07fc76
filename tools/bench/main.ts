import { measureApi } from "./api.ts";
import { archiveBenchLacks, measureArchives, measureArchivesInS3 } from "./archive.ts";
import { measureArchiveCost } from "./archive-cost.ts";
import { backupBenchLacks, measureBackups } from "./backup.ts";
import { measureHaproxy } from "./edge-haproxy.ts";
import { dashboardBenchLacks, measureDashboard } from "./dashboard.ts";
import { measureDeploys } from "./deploy.ts";
import { dockerBenchLacks, measureDockerDeploys } from "./deploy-docker.ts";
import { measureEdgeRows, measureGrowth, measureRows } from "./growth.ts";
import { measureMemory } from "./memory.ts";
import { measureLocks, measurePreviews } from "./previews.ts";
import { startVisitedPlatform } from "../../test/e2e/ways.ts";
import { measureSoak } from "./soak.ts";
import { lacks } from "./nginx.ts";
import { missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { missingForSwift } from "../../test/support/swift.ts";
import { formatRow, type BenchRow } from "./row.ts";

interface Bench {
  readonly name: string;
  /** Returns why this machine can't run it; undefined if it can. */
  readonly lacks?: () => string | undefined;
  readonly measure: () => Promise<readonly BenchRow[]>;
  /** It takes hours. */
  readonly onlyNamed?: true;
}

const benches: readonly Bench[] = [
  { name: "deploy", measure: measureDeploys },
  { name: "deploy-docker", lacks: dockerBenchLacks, measure: measureDockerDeploys },
  { name: "previews", measure: measurePreviews },
  { name: "locks", lacks: () => missingPart || undefined, measure: measureLocks },
  {
    name: "growth-swarm",
    lacks: dockerBenchLacks,
    measure: () => measureRows(() => startVisitedPlatform({ runtime: "swarm", over: "http" }, [])),
  },
  { name: "edge-haproxy", lacks: () => lacks("HAProxy is", "haproxy", "nginx", "wrk"), measure: measureHaproxy },
  { name: "edge-rows", measure: measureEdgeRows },
  { name: "api", lacks: () => lacks("The API is", "wrk"), measure: measureApi },
  { name: "archive", lacks: archiveBenchLacks, measure: measureArchives },
  {
    name: "archive-s3",
    lacks: () => archiveBenchLacks() ?? (missingForSwift || undefined),
    measure: measureArchivesInS3,
  },
  { name: "archive-cost", lacks: () => missingPart || missingForSwift || undefined, measure: measureArchiveCost },
  { name: "backup", lacks: backupBenchLacks, measure: measureBackups },
  { name: "dashboard", lacks: dashboardBenchLacks, measure: measureDashboard },
  { name: "memory", measure: async () => [await measureMemory()] },
  { name: "growth", measure: measureGrowth },
  { name: "soak", lacks: () => missingForSwift || undefined, measure: measureSoak, onlyNamed: true },
];

/** Runs all benches but those of hours, or those named, and prints a line for each row. Arguments with `=` are sizes, see `benchSize`. */
async function main(given: readonly string[]): Promise<void> {
  const only = given.filter((argument) => !argument.includes("="));
  const unknown = only.filter((name) => !benches.some((bench) => bench.name === name));
  if (unknown.length > 0)
    throw new Error(
      `There is no bench ${unknown.join(", ")}; there are ${benches.map((bench) => bench.name).join(", ")}.`,
    );
  for (const bench of benches.filter((each) => (only.length === 0 ? !each.onlyNamed : only.includes(each.name)))) {
    process.stdout.write(`${bench.name}\n`);
    const lacks = bench.lacks?.();
    if (lacks !== undefined) {
      process.stdout.write(`  SKIPPED: ${lacks}\n`);
      continue;
    }
    for (const row of await bench.measure()) process.stdout.write(`  ${formatRow(row)}\n`);
  }
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
