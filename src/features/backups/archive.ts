import type { Result } from "../../contract/routes.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Context } from "../context.ts";
import { databaseOf } from "../database/database.ts";
import type { ProjectKey } from "../projects/projects.ts";
import { chainsOf, copiesOf, lossesOf, type ArchiveChain } from "./archive-queries.ts";
import { gapsOf, outsideText, spansOf, windowsOf } from "./archive-rules.ts";

/** Returns what of a project's database can be restored, and whether log is being added to it: not after a gap before there is a new copy. */
export async function archiveOf(db: Db | Tx, project: ProjectKey) {
  const { spans, copies } = await readSpans(db, await chainsOf(db, project));
  const stored_bytes = copies.reduce((sum, { size_bytes, log_bytes }) => sum + (size_bytes ?? 0) + log_bytes, 0);
  const open = spans.filter(({ end_reason }) => end_reason === null);
  return { windows: windowsOf(spans), gaps: gapsOf(spans), stored_bytes, isOpen: windowsOf(open).length > 0 };
}

/** Returns the spans of chains, and all their copies. */
export async function readSpans(db: Db | Tx, chains: readonly ArchiveChain[]) {
  const [copies, losses] = [await copiesOf(db, chains), await lossesOf(db, chains)];
  return { spans: spansOf(chains, copies, losses), copies };
}

/** Returns which moments can be restored if this one can't. It may be so recent that its log is still to be stored. */
export async function restorableAt(db: Db | Tx, project: ProjectKey, at: Date): Promise<string | undefined> {
  const { windows, isOpen } = await archiveOf(db, project);
  const isWithin = windows.some(({ from, to }) => at >= new Date(from) && at <= new Date(to));
  const isLater = isOpen && at > new Date(windows.at(-1)?.to ?? "") && at <= new Date();
  return isWithin || isLater ? undefined : outsideText(windows);
}

export async function showArchive(
  ctx: Context<"backups.archive"> | Context<"backups.set_archive">,
): Promise<Result<"backups.archive">> {
  const { key } = ctx.project;
  const row = await databaseOf(ctx.tx, key.org_id, key.project_id);
  if (row === undefined) return ctx.fail("no_database");
  const { isOpen, ...shown } = await archiveOf(ctx.tx, key);
  const retention_days = ctx.platform.settings.backups.archiveDays;
  return { ...stateOf(row, { isOpen, retention_days }), ...shown, retention_days };
}

type State = Pick<Result<"backups.archive">, "status" | "reason">;

function stateOf(
  { archived, archive_problem }: { readonly archived: boolean; readonly archive_problem: string | null },
  { isOpen, retention_days }: { isOpen: boolean; retention_days: number },
): State {
  if (retention_days === 0) return { status: "unavailable", reason: "BERTH_ARCHIVE_DAYS is 0 on this platform." };
  if (!archived) return { status: "off", reason: null };
  if (archive_problem === ownServer) return { status: "unavailable", reason: ownServer };
  if (archive_problem !== null) return { status: "behind", reason: archive_problem };
  return { status: isOpen ? "healthy" : "starting", reason: null };
}

/** Why a database on the server of `BERTH_PG_URL` has no archive. */
export const ownServer =
  "The database is on the operator's own PostgreSQL server, whose log Berth does not archive. It has its daily backups.";
