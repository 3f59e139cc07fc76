import type { Answer } from "../../../contract/client.ts";

export type Check = Answer<"status.get">["checks"][number];

const order = ["fail", "unknown", "warn", "ok", "off"];

/** Returns the checks, the worst first, without what an open alert shows and rows that only count those of their check's subjects. */
export function shownChecks(checks: readonly Check[], alerts: Answer<"alerts.list">["alerts"]): readonly Check[] {
  const nameOf = ({ check, machine, subject }: Pick<Check, "check" | "machine" | "subject">) =>
    `${check} ${machine} ${subject}`;
  const alerted = new Set(alerts.map(nameOf));
  const named = new Set(checks.flatMap(({ check, subject }) => (subject === null ? [] : [check])));
  return checks
    .filter((check) => !alerted.has(nameOf(check)) && (check.subject !== null || !named.has(check.check)))
    .toSorted((a, b) => order.indexOf(a.status) - order.indexOf(b.status));
}
