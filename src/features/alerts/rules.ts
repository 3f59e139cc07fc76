import type { Columns } from "../../store/database.ts";
import type { AlertSeverity } from "../../contract/alerts.ts";
import type { CheckStatus } from "../../contract/status.ts";

/** How long something must be bad before an alert is raised; null: no alert. */
export interface Patience {
  readonly warnMs: number | null;
  readonly failMs: number | null;
}

/** The state of a watched thing, as far as alerts need it. */
export interface ObservedStatus {
  readonly status: CheckStatus;
  /** Start of the current status. */
  readonly since: string;
  /** Since when it is not ok; null while it is. */
  readonly bad_since: string | null;
}

// One or two failed probes say more about the probe than about its target.
const unknownMs = 300_000;

/** Returns the severity that the current status calls for; undefined for no alert. */
export function calledFor(
  { status, since, bad_since }: ObservedStatus,
  patience: Patience,
  now: Date,
): AlertSeverity | undefined {
  if (bad_since === null) return undefined;
  const isOlder = (moment: string, ms: number | null) => ms !== null && now.getTime() - Date.parse(moment) >= ms;
  switch (status) {
    case "off":
    case "ok":
      return undefined;
    case "fail":
      if (isOlder(since, patience.failMs)) return "critical";
      // A status that alternates between failing and something less deserves at least a warning.
      return isOlder(bad_since, patience.warnMs ?? patience.failMs) ? "warning" : undefined;
    case "warn":
      return isOlder(bad_since, patience.warnMs) ? "warning" : undefined;
    case "unknown":
      return isOlder(bad_since, unknownMs) ? "warning" : undefined;
  }
}

/** Returns whether the second severity is worse than the first; null is better than any. */
export function isWorse(told: AlertSeverity | null, severity: AlertSeverity): boolean {
  return told === null || (told === "warning" && severity === "critical");
}

/** Returns when a new alert may be announced: at once, or after the cool-down since the last alert about the same thing. */
export function tellAt(lastResolvedAt: string | null, coolDownMs: number, now: Date): Date {
  if (lastResolvedAt === null) return now;
  return new Date(Math.max(now.getTime(), Date.parse(lastResolvedAt) + coolDownMs));
}

export type AlertKey = Columns<"alert", "name" | "machine" | "subject">;

export interface ToldAlert extends AlertKey {
  readonly severity: AlertSeverity;
  readonly summary: string;
  readonly hint: string | null;
  readonly opened_at: string;
}

/** Builds one message about all alerts that were opened and resolved, the most severe first; undefined when there are none. */
export function messageOf(began: readonly ToldAlert[], ended: readonly ToldAlert[]) {
  const opened = [...began].sort(byGravity);
  const resolved = [...ended].sort(byGravity);
  const [first] = [...opened, ...resolved];
  if (first === undefined) return undefined;
  const others = opened.length + resolved.length - 1;
  const state = opened.length > 0 ? first.severity : "resolved";
  const subject = `Berth, ${state}: ${whatOf(first)}${others === 0 ? "" : ` and ${others} more`}`;
  const text = [
    ...opened.map((alert) => linesOf(alert.severity, alert)),
    ...resolved.map((alert) => linesOf("resolved", alert)),
  ];
  return {
    kind: "alert",
    subject,
    text: `${text.join("\n\n")}\n\n\`berth status --platform\` shows every check.\n`,
    url: null,
  };
}

function byGravity(a: ToldAlert, b: ToldAlert): number {
  if (a.severity !== b.severity) return a.severity === "critical" ? -1 : 1;
  return whatOf(a) < whatOf(b) ? -1 : 1;
}

function whatOf({ name, machine, subject }: ToldAlert): string {
  const of = [subject, machine].filter((part) => part !== "");
  return of.length === 0 ? name : `${name} (${of.join(", ")})`;
}

function linesOf(state: string, alert: ToldAlert): string {
  const { summary, hint, opened_at } = alert;
  const head = `${state}: ${whatOf(alert)}`;
  if (state === "resolved") return [head, `The alert opened at ${opened_at}: ${summary}`].join("\n");
  return [head, summary, `Since ${opened_at}.`, ...(hint === null ? [] : [hint])].join("\n");
}
