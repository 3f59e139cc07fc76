import { sql } from "kysely";
import type { CheckStatus } from "../../contract/status.ts";
import type { Db, Tx } from "../../store/database.ts";
import { raiseAlerts, type Alerting, type Watched } from "../alerts/alerts.ts";
import { allChecks, checksOf, deleteChecks, forgetMachines, lockMonitoring, upsertChecks } from "./queries.ts";
import { nextRows, shownStatus, worstOf, type CheckReport } from "./rules.ts";

export * from "./evidence.ts";
export { retireMachine } from "./queries.ts";
export type { CheckReport, Finding } from "./rules.ts";

/** Stores check results, and opens and resolves the alerts, in one transaction. A lock serialises control planes. */
export async function recordReports(
  platform: Alerting & { readonly db: Db },
  reports: readonly CheckReport[],
): Promise<void> {
  await platform.db.transaction().execute(async (tx) => {
    await lockMonitoring(tx);
    const now = await databaseTime(tx);
    const known = Map.groupBy(await checksOf(tx, reports), keyOf);
    // Use few statements, because every other process waits for the lock.
    const next = reports.map((report) => ({ ...report, ...nextRows(report, known.get(keyOf(report)) ?? [], now) }));
    await upsertChecks(
      tx,
      next.flatMap(({ rows }) => rows),
    );
    await deleteChecks(
      tx,
      next.flatMap(({ gone }) => gone),
    );
    const watched: Watched[] = next.map(({ patience, findings, rows, gone }) => ({ patience, findings, rows, gone }));
    watched.push({ patience: { warnMs: null, failMs: null }, findings: [], rows: [], gone: await forgetMachines(tx) });
    await raiseAlerts(platform, tx, { watched, now });
  });
}

const keyOf = ({ name, machine }: { readonly name: string; readonly machine: string }) => `${name} ${machine}`;

export async function overallStatus(db: Db | Tx, now: Date): Promise<CheckStatus> {
  return worstOf((await allChecks(db)).map((row) => shownStatus(row, now).status));
}

// Uses the clock, not the transaction's start: a writer that waited for the lock must not write an earlier time than the writer before it.
async function databaseTime(db: Db | Tx): Promise<Date> {
  const { rows } = await sql<{ now: string }>`select clock_timestamp() as now`.execute(db);
  return new Date((rows[0] as { now: string }).now);
}
