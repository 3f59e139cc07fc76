import type { Columns } from "../../store/database.ts";
import { checkStatuses, isGood, type CheckStatus } from "../../contract/status.ts";
import type { Patience } from "../alerts/alerts.ts";

/** The result of a check for one subject; `subject` is `""` for the check as a whole. Contains no secrets, because it is shown and sent. */
export interface Finding {
  readonly subject: string;
  readonly status: CheckStatus;
  readonly detail: string;
  readonly hint: string | null;
  /** Shown, but opens no alert, because other findings of the same check do. */
  readonly quiet?: boolean;
}

/** Everything that a check found. A previously bad subject that is missing here is no longer bad. */
export interface CheckReport {
  readonly name: string;
  /** `""` for checks that all machines share. */
  readonly machine: string;
  readonly findings: readonly Finding[];
  readonly patience: Patience;
  /** The check itself failed in part: subjects without a finding are unknown. */
  readonly partial?: boolean;
}

export type CheckKey = Columns<"monitor_check", "name" | "machine" | "subject">;

export interface CheckRow
  extends
    CheckKey,
    Columns<"monitor_check", "status" | "detail" | "hint" | "since" | "bad_since" | "last_ok_at" | "checked_at"> {}

/** Returns a check's rows after a report, and the previous rows that are resolved. */
export function nextRows(report: CheckReport, previous: readonly CheckRow[], now: Date) {
  const known = new Map(previous.map((row) => [row.subject, row]));
  // A subject without a row was ok when the check last ran.
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
  const isOk = isGood(status);
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

// Every check runs at least once a minute.
const staleMs = 300_000;

/** Returns the status and detail to show for a row: a check that has not run for five minutes is unknown. */
export function shownStatus(row: Pick<CheckRow, "status" | "checked_at" | "detail">, now: Date) {
  const { status, detail, checked_at } = row;
  if (now.getTime() - Date.parse(checked_at) <= staleMs) return { status, detail };
  return { status: "unknown" as const, detail: `This check has not run for five minutes. Its last result: ${detail}` };
}

/** Returns the worst of these statuses; `unknown` when there are none. */
export function worstOf(statuses: readonly CheckStatus[]): CheckStatus {
  if (statuses.length === 0) return "unknown";
  return checkStatuses[Math.max(...statuses.map((status) => checkStatuses.indexOf(status)))] as CheckStatus;
}
