import type { ArchiveCopy, ArchiveChain } from "./archive-queries.ts";

/** A span in which every moment can be restored. */
export interface ArchiveWindow {
  readonly from: string;
  readonly to: string;
}

type Stored = Pick<ArchiveChain, "id" | "stored_until">;
type Copied = Pick<ArchiveCopy, "chain_id" | "status" | "restorable_from">;

/**
 * Returns the windows of a project, oldest first; what lies between two of them is a gap. One ends where the next begins, which shows the
 * same moments once more after a clock was set back.
 */
export function windowsOf(chains: readonly Stored[], bases: readonly Copied[]): readonly ArchiveWindow[] {
  const windows: ArchiveWindow[] = [];
  for (const { id, stored_until: until } of chains.toReversed()) {
    const isFirst = ({ chain_id, restorable_from }: Copied) => chain_id === id && restorable_from !== null;
    const from = bases.find(isFirst)?.restorable_from;
    const next = windows[0]?.from;
    const to = until !== null && next !== undefined && next < until ? next : until;
    if (from && to !== null && from <= to) windows.unshift({ from, to });
  }
  return windows;
}

/** Says which moments can be restored. */
export function outsideText(windows: readonly ArchiveWindow[]): string {
  if (windows.length === 0) return "No moment of the database can be restored yet.";
  const spans = windows.map(({ from, to }) => `from ${from} to ${to}`);
  return `Only these moments can be restored: ${spans.join(", and ")}.`;
}

/** What to recover: a copy, and the log from its start up to `end`. */
export interface Recovery<Chain, Base> {
  readonly chain: Chain;
  readonly base: Base;
  readonly end: number;
}

/** Finds what shows a moment, which the newest chain does if several could; undefined when no window contains it. */
export function recoveryOf<Chain extends ArchiveChain, Base extends ArchiveCopy>(
  chains: readonly Chain[],
  bases: readonly Base[],
  at: Date,
): Recovery<Chain, Base> | undefined {
  const moment = at.getTime();
  for (const chain of chains.toReversed()) {
    if (chain.stored_until === null || Date.parse(chain.stored_until) < moment) continue;
    const own = bases.filter(({ chain_id, status }) => chain_id === chain.id && status === "completed");
    const base = own.findLast(({ restorable_from }) => Date.parse(restorable_from ?? "") <= moment);
    if (base === undefined) continue;
    // The first later copy may end just before what was committed at the moment; the second was made after that.
    const [, second] = own.filter(({ restorable_from }) => Date.parse(restorable_from ?? "") > moment);
    return { chain, base, end: second?.stop_position ?? chain.stored_position };
  }
  return undefined;
}

const dayMs = 24 * 60 * 60_000;
const copyDays = 7;
const leastLogBytes = 64 * 1024 ** 2;

/** Returns whether a chain needs another copy: a week has passed, or to apply its log would take longer than to read a new one. */
export function needsCopy(bases: readonly ArchiveCopy[], now: Date): boolean {
  const newest = bases.findLast(({ status }) => status === "completed");
  if (newest === undefined) return true;
  const { created_at, log_bytes, size_bytes } = newest;
  return (
    now.getTime() - Date.parse(created_at) > copyDays * dayMs ||
    log_bytes > Math.max(2 * (size_bytes ?? 0), leastLogBytes)
  );
}

const patience = 8;

/** Returns whether a restore would take too long for all the log since the chain's newest copy, or the log is kept too long. */
export function isOverlong(
  chain: Pick<ArchiveChain, "first_position" | "stored_position">,
  bases: readonly ArchiveCopy[],
) {
  const newest = bases.findLast(({ status }) => status === "completed");
  const log_bytes = newest?.log_bytes ?? chain.stored_position - chain.first_position;
  return log_bytes > patience * Math.max(2 * (newest?.size_bytes ?? 0), leastLogBytes);
}

interface Keeping {
  readonly days: number;
  readonly limitBytes: number;
  /** Whether a copy and its log take room of the local disk, which alone has the limit. */
  readonly isLocal: (base: ArchiveCopy) => boolean;
  readonly now: Date;
}

/**
 * Returns which copies of a database's chains are kept no longer, oldest first: those that only show moments before the retention, and the
 * oldest ones while the local ones take more than `limitBytes`. The newest always stays.
 */
export function oldCopies(bases: readonly ArchiveCopy[], keep: Keeping): readonly ArchiveCopy[] {
  const oldestFirst = bases
    .filter(({ status }) => status === "completed")
    .toSorted((a, b) => Date.parse(a.restorable_from ?? "") - Date.parse(b.restorable_from ?? ""));
  const since = keep.now.getTime() - keep.days * dayMs;
  const bytesOf = (base: ArchiveCopy) => (keep.isLocal(base) ? (base.size_bytes ?? 0) + base.log_bytes : 0);
  let bytes = oldestFirst.reduce((sum, base) => sum + bytesOf(base), 0);
  const old: ArchiveCopy[] = [];
  for (const [index, base] of oldestFirst.entries()) {
    const next = oldestFirst[index + 1];
    if (next === undefined) break;
    if (Date.parse(next.restorable_from ?? "") > since && bytes <= keep.limitBytes) break;
    bytes -= bytesOf(base);
    old.push(base);
  }
  return old;
}
