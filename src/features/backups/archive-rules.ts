import { segmentName } from "../../ports/postgres-host.ts";
import type { ArchiveChain, ArchiveCopy, ArchiveLoss } from "./archive-queries.ts";

/** A span in which every moment can be restored. */
export interface ArchiveWindow {
  readonly from: string;
  readonly to: string;
}

/** A chain, or a part of one between segments that are lost. */
export interface Span {
  readonly chain: ArchiveChain;
  /** Those that were made, oldest first. */
  readonly copies: readonly ArchiveCopy[];
  /** How far its log goes, and the last moment that it shows. */
  readonly end: number;
  readonly until: string | null;
  /** Why its log ends there; null while it goes on. */
  readonly end_reason: string | null;
}

/** Returns the spans of these chains, oldest first. */
export function spansOf(
  chains: readonly ArchiveChain[],
  copies: readonly ArchiveCopy[],
  losses: readonly ArchiveLoss[],
): readonly Span[] {
  return chains.flatMap((chain) => {
    const { id, segment_bytes: size, stored_position, stored_until, end_reason } = chain;
    const own = copies.filter(({ chain_id, status }) => chain_id === id && status !== "copying");
    const lost = losses.filter(({ chain_id }) => chain_id === id);
    const ends = lost.map(({ position: end, until }) => ({ end, until, end_reason: lossText(chain, end) }));
    return [...ends, { end: stored_position, until: stored_until, end_reason }].map((end, index) => {
      const [before, after] = [lost[index - 1], lost[index]];
      const from = before === undefined ? 0 : before.position + size;
      const isIn = ({ start_position: at }: ArchiveCopy) =>
        (at ?? 0) >= from && (at ?? 0) < (after?.position ?? Infinity);
      return { chain, copies: own.filter(isIn), ...end };
    });
  });
}

const lossText = (chain: ArchiveChain, position: number) =>
  `The log segment ${segmentName(chain, position)} was found missing or damaged.`;

const isWhole = ({ status }: ArchiveCopy) => status === "completed";

/**
 * Returns the windows of a project, oldest first; what lies between two of them is a gap. One ends where the next begins, which shows the
 * same moments once more after a clock was set back.
 */
export function windowsOf(spans: readonly Span[]): readonly ArchiveWindow[] {
  const windows: ArchiveWindow[] = [];
  for (const { copies, until } of spans.toReversed()) {
    const from = copies.find(isWhole)?.restorable_from;
    const next = windows[0]?.from;
    const to = until !== null && next !== undefined && next < until ? next : until;
    if (from && to !== null && from <= to) windows.unshift({ from, to });
  }
  return windows;
}

/** Returns what lies between the windows, and why. */
export function gapsOf(spans: readonly Span[]): readonly (ArchiveWindow & { readonly reason: string })[] {
  const windows = windowsOf(spans);
  const damaged = spans.flatMap(({ copies }) => copies.filter((copy) => !isWhole(copy)));
  return windows.slice(1).flatMap(({ from: to }, index) => {
    const from = windows[index]?.to ?? to;
    const isIn = ({ restorable_from: at }: ArchiveCopy) => at !== null && at >= from && at < to;
    const reasons = [
      spans.find(({ until }) => until === from)?.end_reason,
      damaged.some(isIn) && "A copy in the archive was found missing or damaged.",
    ];
    return from < to ? [{ from, to, reason: reasons.filter((each) => typeof each === "string").join(" ") }] : [];
  });
}

/** Returns the nearest moments that can be restored before and after one that cannot. */
export function nearestTo(windows: readonly ArchiveWindow[], at: Date): readonly string[] {
  const before = windows.findLast(({ to }) => new Date(to) < at)?.to;
  const after = windows.find(({ from }) => new Date(from) > at)?.from;
  return [before, after].filter((moment) => moment !== undefined);
}

/** Says which moments can be restored. */
export function outsideText(windows: readonly ArchiveWindow[]): string {
  if (windows.length === 0) return "No moment of the database can be restored yet.";
  const spans = windows.map(({ from, to }) => `from ${from} to ${to}`);
  return `Only these moments can be restored: ${spans.join(", and ")}.`;
}

/** What to recover: a copy, and the log from its start up to `end`. */
export interface Recovery {
  readonly chain: ArchiveChain;
  readonly base: ArchiveCopy;
  readonly end: number;
}

/** Finds what shows a moment, which the newest span does if several could: its newest copy first, as older ones need more log. */
export function recoveriesOf(spans: readonly Span[], at: Date): readonly Recovery[] {
  const moment = at.getTime();
  for (const { chain, copies, end, until } of spans.toReversed()) {
    if (until === null || Date.parse(until) < moment) continue;
    const whole = copies.filter(isWhole);
    const before = whole.filter(({ restorable_from }) => Date.parse(restorable_from ?? "") <= moment);
    // The first later copy may end just before what was committed at the moment; the second was made after that.
    const second = whole[before.length + 1];
    if (before.length > 0)
      return before.toReversed().map((base) => ({ chain, base, end: second?.stop_position ?? end }));
  }
  return [];
}

const dayMs = 24 * 60 * 60_000;
const copyDays = 7;
const leastLogBytes = 64 * 1024 ** 2;

/** Returns whether another copy is needed: a week has passed, or to apply the log would take longer than to read a new one. */
export function needsCopy({ copies }: Pick<Span, "copies">, now: Date): boolean {
  const newest = copies.at(-1);
  if (newest === undefined || !isWhole(newest)) return true;
  const { created_at, log_bytes, size_bytes } = newest;
  return (
    now.getTime() - Date.parse(created_at) > copyDays * dayMs ||
    log_bytes > Math.max(2 * (size_bytes ?? 0), leastLogBytes)
  );
}

const patience = 8;

/** Returns whether a restore would take too long for all the log since the chain's newest copy, or the log is kept too long. */
export function isOverlong({ chain, copies }: Pick<Span, "chain" | "copies">) {
  const newest = copies.findLast(isWhole);
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
 * oldest ones while the local ones take more than `limitBytes`. The newest whole one always stays.
 */
export function oldCopies(bases: readonly ArchiveCopy[], keep: Keeping): readonly ArchiveCopy[] {
  const oldestFirst = bases
    .filter(({ status }) => status !== "copying")
    .toSorted((a, b) => Date.parse(a.restorable_from ?? "") - Date.parse(b.restorable_from ?? ""));
  const since = keep.now.getTime() - keep.days * dayMs;
  const bytesOf = (base: ArchiveCopy) => (keep.isLocal(base) ? (base.size_bytes ?? 0) + base.log_bytes : 0);
  let bytes = oldestFirst.reduce((sum, base) => sum + bytesOf(base), 0);
  const old: ArchiveCopy[] = [];
  for (const [index, base] of oldestFirst.entries()) {
    const next = isWhole(base) ? oldestFirst.slice(index + 1).find(isWhole) : base;
    if (next === undefined) break;
    if (Date.parse(next.restorable_from ?? "") > since && bytes <= keep.limitBytes) break;
    bytes -= bytesOf(base);
    old.push(base);
  }
  return old;
}
