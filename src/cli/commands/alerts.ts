import { paintStatus, oneLine, relativeTime } from "../render/text.ts";
import { listCommand } from "../command-tree.ts";

export const addAlerts = listCommand({
  row: "alerts.list",
  usage: "alerts",
  summary: "List the open alerts (for the platform's operator)",
  examples: ["berth alerts", "berth alerts --all", "berth alerts --all --cursor alt_01jd… --json"],
  input: ({ all }) => ({ query: { all } }),
  items: (answer) => answer.alerts,
  columns: {
    SEVERITY: (alert, paint) => paintStatus(paint, alert.resolved_at === null ? alert.severity : "resolved"),
    CHECK: (alert) => [alert.check, alert.subject].filter((part) => part !== null).join(" "),
    MACHINE: (alert) => alert.machine ?? "",
    OPENED: (alert) => relativeTime(alert.opened_at),
    RESOLVED: (alert) => (alert.resolved_at === null ? "" : relativeTime(alert.resolved_at)),
    SUMMARY: (alert) => oneLine(alert.summary, 120),
  },
  empty: "There are no alerts.",
  options: (command) => command.option("--all", "the resolved ones too"),
});
