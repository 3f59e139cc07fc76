import { apiBenchLacks, measureApi } from "./api.ts";
import { archiveBenchLacks, archiveS3BenchLacks, measureArchives, measureArchivesInS3 } from "./archive.ts";
import { archiveCostLacks, measureArchiveCost } from "./archive-cost.ts";
import { backupBenchLacks, measureBackups } from "./backup.ts";
import { haproxyBenchLacks, measureHaproxy } from "./edge-haproxy.ts";
import { dashboardBenchLacks, measureDashboard } from "./dashboard.ts";
import { measureDeploys } from "./deploy.ts";
import { dockerBenchLacks, measureDockerDeploys } from "./deploy-docker.ts";
import { measureEdgeRows, measureGrowth, measureRows } from "./growth.ts";
import { measureMemory } from "./memory.ts";
import { locksBenchLacks, measureLocks, measurePreviews } from "./previews.ts";
import { startVisitedPlatform } from "../../test/e2e/ways.ts";
import { measureSoak, soakLacks } from "./soak.ts";
import { formatRow, type BenchRow } from "./row.ts";

interface Bench {
  readonly name: string;
  /** Returns why this machine can't run it; undefined if it can. */
  readonly lacks?: () => string | undefined;
  readonly measure: () => Promise<readonly BenchRow[]>;
  /** It takes hours. */
  readonly onlyNamed?: true;
}

const startOnSwarm = () => startVisitedPlatform({ runtime: "swarm", over: "http" }, []);

const benches: readonly Bench[] = [
  { name: "deploy", measure: measureDeploys },
  { name: "deploy-docker", lacks: dockerBenchLacks, measure: measureDockerDeploys },
  { name: "previews", measure: measurePreviews },
  { name: "locks", lacks: locksBenchLacks, measure: measureLocks },
  { name: "growth-swarm", lacks: dockerBenchLacks, measure: () => measureRows(startOnSwarm) },
  { name: "edge-haproxy", lacks: haproxyBenchLacks, measure: measureHaproxy },
  { name: "edge-rows", measure: measureEdgeRows },
  { name: "api", lacks: apiBenchLacks, measure: measureApi },
  { name: "archive", lacks: archiveBenchLacks, measure: measureArchives },
  { name: "archive-s3", lacks: archiveS3BenchLacks, measure: measureArchivesInS3 },
  { name: "archive-cost", lacks: archiveCostLacks, measure: measureArchiveCost },
  { name: "backup", lacks: backupBenchLacks, measure: measureBackups },
  { name: "dashboard", lacks: dashboardBenchLacks, measure: measureDashboard },
  { name: "memory", measure: async () => [await measureMemory()] },
  { name: "growth", measure: measureGrowth },
  { name: "soak", lacks: soakLacks, measure: measureSoak, onlyNamed: true },
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
