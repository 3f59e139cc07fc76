import type { Answer } from "../../contract/client.ts";
import { bytesText, counted } from "../../kit/bytes-text.ts";
import { paintStatus, facts, table, oneLine, relativeTime, type Paint } from "../render/text.ts";
import { rowCommand } from "../command-tree.ts";

type Overview = Answer<"overview.get">;

export const addOverview = rowCommand({
  row: "overview.get",
  usage: "overview",
  summary: "Show all projects at a glance",
  examples: ["berth overview", "berth overview --json"],
  text: describe,
});

function describe({ organization, totals, projects }: Overview, paint: Paint): string {
  const head = facts(paint, [
    ["organization", `${organization.slug} (${oneLine(organization.name)})`],
    ["projects", `${totals.projects} of ${organization.max_projects}, ${totals.serving} serving`],
    ["last hour", `${counted(totals.requests_last_hour, "request")}, ${counted(totals.errors_last_hour, "error")}`],
    ["storage", bytesText(totals.storage_bytes)],
    [
      "alerts",
      totals.alerts === null || totals.alerts === 0 ? null : paint.red(`${totals.alerts} open: \`berth alerts\``),
    ],
    [
      "approvals",
      totals.approvals_pending === 0
        ? null
        : paint.yellow(`${counted(totals.approvals_pending, "request")} waiting for a decision: \`berth approvals\``),
    ],
  ]);
  const columns = [
    "PROJECT",
    "HEALTH",
    "DEPLOYMENT",
    "REPLICAS",
    "REQUESTS/H",
    "ERRORS/H",
    "DATABASE",
    "BACKUP",
    "STORAGE",
    "ATTENTION",
  ];
  const rows = projects.map((project) => rowOf(paint, project));
  return `${head}\n\n${table(paint, columns, rows, "There are no projects yet: `berth create` makes one.")}`;
}

function rowOf(paint: Paint, project: Overview["projects"][number]): string[] {
  const { active_deployment: active, replicas, last_hour: hour, last_backup: backup } = project;
  const attention = project.attention.map((reason) => reason.replaceAll("_", " ")).join(", ");
  return [
    project.slug,
    paintStatus(paint, project.health.state),
    active === null ? "-" : `#${active.number} ${relativeTime(active.at)}`,
    `${replicas.ready}/${replicas.wanted}`,
    String(hour.requests),
    hour.errors > 0 ? paint.red(String(hour.errors)) : "0",
    project.database === null ? "-" : paintStatus(paint, project.database),
    backup === null ? "-" : `${paintStatus(paint, backup.status)} ${relativeTime(backup.at)}`,
    project.storage_bytes === null ? "-" : bytesText(project.storage_bytes),
    attention === "" ? "" : paint.yellow(attention),
  ];
}
