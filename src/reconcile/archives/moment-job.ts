import { failDrill, insertRestored, endDrill, type Evidence } from "../../features/backups/backups.ts";
import { databaseOf, specOf } from "../../features/database/database.ts";
import { DatabaseWorkFailed, type TableCount } from "../../ports/postgres-host.ts";
import { requireLease } from "../../store/leases.ts";
import type { End, Job, Work } from "../backups/backup-job.ts";
import { recoverMoment, type MomentWork } from "./recover-moment.ts";
import { createHash } from "node:crypto";

/** Restores a database to a moment: recovers a copy of its instance, and copies its live database into a new one; a drill only reads. */
export async function momentJob(given: Work, restoreTo: string): Promise<Job> {
  const { platform, operation } = given;
  const row = await databaseOf(platform.db, operation.org_id, operation.project_id);
  if (row === undefined) throw new Error("the operation's project has no database");
  const history = platform.ports.postgresHost.history(row.id);
  if (history === null) throw new Error("the database has no archive");
  const spec = specOf(platform.vault, row);
  const room = {
    copies: operation.kind === "verify" ? 1 : 2,
    mayPassDamaged: operation.kind !== "verify",
    onBytes: (bytes_done: number) => given.progress.tell({ bytes_done }),
  };
  const work = {
    ...given,
    row,
    spec,
    history,
    at: new Date(restoreTo),
    name: operation.database_name as string,
    ...room,
  };
  const cleaning = { cleanUp: () => cleanUp(work) };
  if (operation.kind !== "verify") return { ...cleaning, perform: () => restore(work) };
  return { ...cleaning, perform: () => drill(work), atEnd: (tx) => failDrill(tx, operation.id) };
}

async function restore(work: MomentWork): Promise<End> {
  const { platform, operation, spec, history, at, name, progress, signal } = work;
  await progress.enter("checking");
  const found = await recoverMoment(work);
  if ("problem" in found) return { problem: found.problem };
  await progress.enter("restoring");
  const { postgresHost } = platform.ports;
  await postgresHost.createDatabase(spec, name);
  const { counts } = await found.recovered.dump(found.live, {
    signal,
    isCompressed: false,
    onCounted: ({ counted, tables }) => progress.tell({ tables_done: counted, tables_total: tables }),
    consume: (archive) => postgresHost.restore(spec, name, { archive, signal }),
  });
  await progress.enter("counting");
  requireSame(counts, await postgresHost.countRows(spec, name, { signal }));
  await history.discardRecovered(spec.id);
  const { org_id, project_id } = operation;
  const row = { org_id, project_id, name, backup_id: null, shows: at.toISOString() };
  const { damaged_copies } = found;
  const detail = damaged_copies.length === 0 ? {} : { damaged_copies };
  return { problem: null, write: (tx) => insertRestored(tx, row), detail };
}

function requireSame(expected: readonly TableCount[], actual: readonly TableCount[]): void {
  const rows = new Map(actual.map((each) => [each.table, each.rows]));
  const differing = expected.filter((each) => rows.get(each.table) !== each.rows);
  if (differing.length > 0)
    throw new DatabaseWorkFailed(
      "refused",
      `${differing.length} of ${expected.length} tables differ after the restore.`,
    );
}

async function cleanUp({ platform, lease, spec, history, name }: MomentWork): Promise<void> {
  await requireLease(platform.db, lease);
  await history.discardRecovered(spec.id);
  await platform.ports.postgresHost.dropDatabase(spec, name);
}

/** Restores a database from its archive in a server of its own, reads every row, and compares each table with the live one. */
async function drill(work: MomentWork): Promise<End> {
  const { platform, operation, history, spec, signal, progress } = work;
  const started_at = new Date().toISOString();
  await progress.enter("counting");
  const source = await countLive(work);
  const found = await recoverMoment({ ...work, at: source.at });
  if ("problem" in found) return { problem: found.problem };
  await progress.enter("restoring");
  const digest = createHash("sha256");
  let bytes = 0;
  const { counts, engine_version } = await found.recovered.dump(found.live, {
    signal,
    isCompressed: false,
    onCounted: ({ counted, tables }) => progress.tell({ tables_done: counted, tables_total: tables }),
    async consume(archive) {
      for await (const chunk of archive as AsyncIterable<Buffer>) {
        digest.update(chunk);
        bytes += chunk.length;
      }
    },
  });
  await progress.enter("cleaning");
  await history.discardRecovered(spec.id);
  const tables = compared(counts, source);
  const evidence: Evidence = {
    ...{ started_at, finished_at: new Date().toISOString(), asked_for: source.at.toISOString() },
    reached: found.recovered.last_commit_at?.toISOString() ?? null,
    ...{
      database: found.live,
      engine_version,
      storage: found.chain.storage,
      berth_version: platform.settings.monitors.version,
    },
    ...{ copy: found.copy, log: found.log(), dump: { bytes, sha256: digest.digest("hex") } },
    tables,
  };
  const differing = tables.filter(({ live_rows, rows }) => live_rows !== null && live_rows !== rows);
  const problem = differing.length === 0 ? null : `${differing.length} of ${tables.length} tables differ.`;
  return { problem: null, write: (tx) => endDrill(tx, operation.id, evidence, problem) };
}

/** The rows of each live table before and after a moment. */
interface Source {
  readonly before: readonly TableCount[];
  readonly at: Date;
  readonly after: readonly TableCount[];
}

async function countLive({ platform, history, spec, signal }: MomentWork): Promise<Source> {
  const count = () => platform.ports.postgresHost.countRows(spec, spec.database_name, { signal });
  const before = await count();
  const { at } = await history.position(spec);
  return { before, at, after: await count() };
}

/** Compares the tables that had as many rows before the moment as after it; in the others, something was being written. */
function compared(restored: readonly TableCount[], { before, after }: Source): Evidence["tables"] {
  const rowsIn = (counts: readonly TableCount[]) => new Map(counts.map(({ table, rows }) => [table, rows]));
  const [first, last, found] = [rowsIn(before), rowsIn(after), rowsIn(restored)];
  const names = new Set([...found.keys(), ...before.map(({ table }) => table)]);
  return [...names].toSorted().map((table) => ({
    table,
    rows: found.get(table) ?? 0,
    live_rows: first.get(table) === last.get(table) ? (last.get(table) ?? null) : null,
  }));
}
