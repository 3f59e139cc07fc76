import { updateBranch, type TakenBranch } from "../../features/branches/branches.ts";
import { readMask } from "../../features/builds/builds.ts";
import { awaken, databaseOf, specOf } from "../../features/database/database.ts";
import { bytesText } from "../../kit/bytes-text.ts";
import {
  DatabaseWorkFailed,
  MaskFailed,
  type BranchOptions,
  type CopyMethod,
  type DatabaseEndpoint,
  type DatabaseSpec,
  type RecoverySource,
} from "../../ports/postgres-host.ts";
import { ArchiveDamaged, StorageFull } from "../../ports/storage.ts";
import { requireLease, type Lease } from "../../store/leases.ts";
import { useMoment } from "../archives/recover-moment.ts";
import { LogDamaged } from "../archives/stored-log.ts";
import type { Platform } from "../platform.ts";

/** Why there is no branch: a code of the API, and a sentence for the project's owner. */
export interface Problem {
  readonly code: string;
  readonly summary: string;
}

export type Made = DatabaseEndpoint & { readonly size_limit_bytes: number };

export interface Making {
  readonly platform: Platform;
  readonly branch: TakenBranch;
  readonly lease: Lease;
  readonly signal: AbortSignal;
}

/** What a branch may grow beyond its database at the time. */
const growthBytes = 1024 ** 3;
/** What is copied, or recovered from the archive, in a second, as docs/performance.md measured it on a busy machine. */
const bytesPerSecond = { copied: 100 * 1024 ** 2, recovered: 35 * 1024 ** 2 };

/** Makes the instance of a branch and starts it. Resolves with the problem if there is none to be made; throws on platform faults. */
export async function makeBranch(making: Making): Promise<Made | Problem> {
  try {
    return await perform(making);
  } catch (error) {
    making.signal.throwIfAborted();
    const problem = problemOf(error);
    if (problem === undefined) throw error;
    making.platform.log.warn({ err: error, branch: making.branch.id }, "a branch could not be made");
    return problem;
  }
}

async function perform(making: Making): Promise<Made | Problem> {
  const { platform, branch, lease, signal } = making;
  const { db, vault, ports } = platform;
  const row = await awaken(platform, await databaseOf(db, branch.org_id, branch.project_id), signal);
  const history = row && ports.postgresHost.history(row.id);
  if (row === undefined || history === null || history === undefined)
    return { code: "unavailable", summary: "The project's database is gone." };
  const spec = specOf(vault, row);
  const seen = await ports.postgresHost.observe(spec);
  if (seen.state !== "running") throw new DatabaseWorkFailed("away", "The database is not running.");
  const mask = branch.mask_commit === null ? null : await maskOf(making, branch.mask_commit);
  const { password } = specOf(vault, { ...row, sealed_password: branch.sealed_password });
  const branchFrom = async (from: RecoverySource | null, database_name: string): Promise<Made> => {
    await updateBranch(db, lease, { database_name });
    const target: DatabaseSpec = { ...spec, id: branch.id, database_name, password, access: "open", was_ready: true };
    await requireLease(db, lease);
    const announced = (method: CopyMethod) => announce(making, method, seen.size_bytes);
    await history.branch(spec, target, { from, mask, signal, announce: announced });
    const endpoint = await ports.postgresHost.ensure(target, signal);
    return { ...endpoint, size_limit_bytes: seen.size_bytes + growthBytes };
  };
  if (branch.shows === null) return branchFrom(null, spec.database_name);
  const of = { row, spec, history, platform, signal, at: new Date(branch.shows) };
  const moment = { ...of, copies: 1, mayPassDamaged: true, onBytes: () => {} };
  const made = await useMoment(moment, ({ source, live }) => branchFrom(source, live));
  return "problem" in made ? made.problem : made;
}

/** Refuses a copy that is too large, and lets waiting callers know what is copied. */
async function announce({ platform, branch, lease }: Making, method: CopyMethod, copy_bytes: number): Promise<void> {
  const { copyBytes } = platform.settings.branches;
  const seconds = Math.ceil(copy_bytes / bytesPerSecond[branch.shows === null ? "copied" : "recovered"]);
  if (method === "copy" && copy_bytes > copyBytes)
    throw new CopyTooLarge(
      `The database has ${bytesText(copy_bytes)}, which would take about ${seconds} s to copy; at most ${bytesText(copyBytes)} are copied.`,
    );
  const { is_low, available_bytes } = await platform.ports.dataDisk.observe();
  if (is_low || (method === "copy" && available_bytes < copy_bytes)) throw new StorageFull();
  const expected_seconds = method === "copy" ? seconds : 1;
  await updateBranch(platform.db, lease, { method, copy_bytes, expected_seconds });
  await platform.wakeups.send(platform.db, "outcomes", branch.id);
}

class CopyTooLarge extends Error {}

/** Reads the SQL that the commit's berth.json names. */
async function maskOf({ platform, branch }: Making, commit: string): Promise<BranchOptions["mask"]> {
  const { project_id, root } = branch;
  const mask = await readMask(platform.ports.repositories, { project_id, commit, root });
  if (mask === undefined)
    throw new MaskFailed(
      'berth.json of the deployed commit names no mask: deploy one with `"mask": "mask.sql"`, a file whose SQL changes what people must not see.',
    );
  const { path, sql } = mask;
  if (sql === undefined) throw new MaskFailed(`The deployed commit has no file ${path} of at most 1 MiB.`);
  return { sql, timeoutMs: platform.settings.branches.maskMs };
}

/** Returns the problem of a failed attempt; undefined for a platform fault. */
function problemOf(error: unknown): Problem | undefined {
  const summary = (error as Error).message;
  if (error instanceof MaskFailed) return { code: "mask_failed", summary };
  if (error instanceof CopyTooLarge) return { code: "copy_too_large", summary };
  if (error instanceof LogDamaged) return { code: "wal_missing", summary };
  if (error instanceof ArchiveDamaged) return { code: "backup_damaged", summary };
  if (error instanceof StorageFull) return { code: "storage_full", summary: "The disk has no room for the branch." };
  if (!(error instanceof DatabaseWorkFailed)) return undefined;
  const codes = { full: "storage_full", refused: "conflict", away: "unavailable", missing: "unavailable" } as const;
  return { code: codes[error.reason], summary };
}
