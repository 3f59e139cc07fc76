import { checkStatuses, type CheckStatus } from "../../contract/status.ts";
import type { Patience } from "../alerts/alerts.ts";

/** What a check saw of one thing. `subject` is `""` for the check as a whole. No secrets: it is shown and sent. */
export interface Finding {
  readonly subject: string;
  readonly status: CheckStatus;
  readonly detail: string;
  readonly hint: string | null;
  /** It is shown and opens no alert, because others of the same check do. */
  readonly quiet?: boolean;
}

/** What a check saw, of all that it watches: a subject that is missing is not bad any more. */
export interface CheckReport {
  readonly name: string;
  /** `""` for what all machines share. */
  readonly machine: string;
  readonly findings: readonly Finding[];
  readonly patience: Patience;
  /** Looking did not work: nothing is said about the subjects that are not among the findings. */
  readonly partial?: boolean;
}

export interface CheckKey {
  readonly name: string;
  readonly machine: string;
  readonly subject: string;
}

/** A finding as it is kept. */
export interface CheckRow extends CheckKey {
  readonly status: CheckStatus;
  readonly detail: string;
  readonly hint: string | null;
  readonly since: string;
  readonly bad_since: string | null;
  readonly last_ok_at: string | null;
  readonly checked_at: string;
}

/** The rows of a check after a report, and those that are over. */
export function nextRows(report: CheckReport, previous: readonly CheckRow[], now: Date) {
  const known = new Map(previous.map((row) => [row.subject, row]));
  // A subject that was not listed at the last look was ok then.
  const lastLook = known.get("")?.checked_at ?? null;
  const rows = report.findings.map((finding) =>
    nextRow(report, finding, { before: known.get(finding.subject), lastLook, now }),
  );
  const listed = new Set(report.findings.map(({ subject }) => subject));
  return { rows, gone: report.partial ? [] : previous.filter((row) => !listed.has(row.subject)) };
}

interface Past {
  readonly before: CheckRow | undefined;
  readonly lastLook: string | null;
  readonly now: Date;
}

function nextRow({ name, machine }: CheckReport, finding: Finding, { before, lastLook, now }: Past): CheckRow {
  const { subject, status, detail, hint } = finding;
  const at = now.toISOString();
  const isOk = status === "ok";
  const wasOk = before === undefined ? lastLook : before.last_ok_at;
  return {
    name,
    machine,
    subject,
    status,
    detail,
    hint,
    since: before?.status === status ? before.since : at,
    bad_since: isOk ? null : (before?.bad_since ?? at),
    last_ok_at: isOk ? at : wasOk,
    checked_at: at,
  };
}

// Every check is made once a minute at least.
const staleMs = 300_000;

/** A row's status as it is shown: a check that did not run for five minutes is unknown. */
export function shownStatus(row: Pick<CheckRow, "status" | "checked_at" | "detail">, now: Date) {
  const { status, detail, checked_at } = row;
  if (now.getTime() - Date.parse(checked_at) <= staleMs) return { status, detail };
  return { status: "unknown" as const, detail: `This check has not run for five minutes. Its last result: ${detail}` };
}

/** The worst of these statuses; `unknown` when there are none. */
export function worstOf(statuses: readonly CheckStatus[]): CheckStatus {
  if (statuses.length === 0) return "unknown";
  return checkStatuses[Math.max(...statuses.map((status) => checkStatuses.indexOf(status)))] as CheckStatus;
}
