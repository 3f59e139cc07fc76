import { limits } from "../../contract/limits.ts";
import { troubledArchives, troubledDrills } from "../../features/backups/backups.ts";
import { specOf, wantedDatabases, type DatabaseRow } from "../../features/database/database.ts";
import {
  backupAges,
  countDomains,
  cronLateness,
  openWork,
  projectsNearLimits,
  readyDatabaseNames,
  troubledDatabases,
  troubledDomains,
} from "../../features/status/status.ts";
import { observeHealth } from "../../features/health/health.ts";
import { mapWithConcurrency } from "../../kit/map-with-concurrency.ts";
import { givenUpWebhooks } from "../../features/webhooks/webhooks.ts";
import type { Platform } from "../platform.ts";
import { missingParts } from "../missing-parts.ts";
import { listed, type Check } from "./check.ts";
import {
  evaluateArchives,
  evaluateBackups,
  evaluateCertificates,
  evaluateCron,
  evaluateDatabases,
  evaluateDiskLimits,
  evaluateDomains,
  evaluateHealth,
  evaluateWebhooks,
  evaluateWork,
} from "./evaluate-projects.ts";

const minuteMs = 60_000;

export function projectChecks(platform: Platform): readonly Check[] {
  const { db, settings } = platform;
  const scope = "shared";
  const soon = { warnMs: 5 * minuteMs, failMs: minuteMs };
  const atOnce = { warnMs: 0, failMs: 0 };
  return [
    {
      name: "databases",
      scope,
      patience: soon,
      everyMs: minuteMs,
      timeoutMs: 30_000,
      look: (signal) => checkDatabases(platform, signal),
    },
    {
      name: "applications",
      scope,
      patience: { warnMs: 5 * minuteMs, failMs: 0 },
      look: async () => {
        const now = platform.clock.now();
        return evaluateHealth(await observeHealth(db, now), now);
      },
    },
    { name: "cron", scope, patience: soon, look: async () => [evaluateCron(await cronLateness(db))] },
    {
      name: "work",
      scope,
      patience: atOnce,
      look: async () =>
        evaluateWork(await openWork(db), {
          buildMs: settings.buildLimits.timeoutMs,
          deploymentMs: settings.releaseTimeoutMs + Math.max(settings.health.budgetMs, limits.start_seconds * 1000),
        }),
    },
    ...dataChecks(platform),
    ...reachChecks(platform),
  ];
}

/** Returns the checks of what projects store: their disk limits, their backups, their parts in the data folder. */
function dataChecks(platform: Platform): readonly Check[] {
  const { db, settings } = platform;
  const scope = "shared";
  const atOnce = { warnMs: 0, failMs: 0 };
  return [
    {
      name: "disk_limits",
      scope,
      patience: { warnMs: 5 * minuteMs, failMs: minuteMs },
      everyMs: minuteMs,
      look: async () => evaluateDiskLimits(await projectsNearLimits(db, settings.disk)),
    },
    {
      name: "backups",
      scope,
      patience: atOnce,
      everyMs: minuteMs,
      look: async () =>
        evaluateBackups(await backupAges(db), {
          seconds: settings.monitors.backupAgeMs / 1000,
          daily: settings.backups.window !== null,
        }),
    },
    {
      name: "archives",
      scope,
      patience: { warnMs: 15 * minuteMs, failMs: 0 },
      everyMs: minuteMs,
      look: async () => evaluateArchives(await troubledArchives(db), await troubledDrills(db)),
    },
    {
      name: "data_folder",
      scope,
      patience: atOnce,
      everyMs: minuteMs,
      look: async () =>
        listed(await missingParts(platform, { withBackups: true }), {
          ok: "Everything that projects have in the data folder is there.",
          bad: "Parts of projects that are missing from the data folder",
        }),
    },
  ];
}

/** Returns the checks of connections to the outside: hostnames, certificates, webhooks. */
function reachChecks({ db }: Platform): readonly Check[] {
  const scope = "shared";
  const atOnce = { warnMs: 0, failMs: 0 };
  return [
    {
      name: "domains",
      scope,
      patience: { warnMs: 15 * minuteMs, failMs: 0 },
      everyMs: minuteMs,
      look: async () => evaluateDomains(await troubledDomains(db), (await countDomains(db)).served),
    },
    {
      name: "certificates",
      scope,
      patience: atOnce,
      everyMs: minuteMs,
      look: async () => evaluateCertificates(await troubledDomains(db), (await countDomains(db)).certificates),
    },
    {
      name: "webhooks",
      scope,
      patience: atOnce,
      everyMs: minuteMs,
      look: async () => evaluateWebhooks(await givenUpWebhooks(db)),
    },
  ];
}

const maxConcurrency = 8;

/** Probes every database that should run, a few at a time. */
async function checkDatabases(platform: Platform, signal: AbortSignal) {
  const names = await readyDatabaseNames(platform.db);
  const rows = (await wantedDatabases(platform.db)).filter((row) => names.has(row.id));
  const silent: string[] = [];
  await mapWithConcurrency(rows, maxConcurrency, async (row) => {
    if (!signal.aborted && !(await answers(platform, row))) silent.push(names.get(row.id) ?? row.id);
  });
  const troubled = await troubledDatabases(platform.db);
  return evaluateDatabases({ total: rows.length + troubled.length, troubled, silent });
}

async function answers(platform: Platform, row: DatabaseRow): Promise<boolean> {
  try {
    return (await platform.ports.postgresHost.observe(specOf(platform.vault, row))).state === "running";
  } catch {
    return false;
  }
}
