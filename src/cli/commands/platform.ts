import type { Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import type { CliContext } from "../context.ts";
import { paintStatus, type Paint } from "../render/paint.ts";
import { facts, table } from "../render/table.ts";
import { oneLine, relativeTime, size } from "../render/text.ts";
import { counted } from "../../kit/counted.ts";
import { rowCommand } from "../row-commands.ts";

/** `berth platform`: what runs, and what it uses. */
export function addPlatform(program: Command, ctx: CliContext): void {
  rowCommand(program, ctx, {
    row: "platform.overview",
    usage: "platform",
    summary: "Show what runs on the platform and what it uses (for its operator)",
    examples: ["berth platform", "berth platform --json"],
    text: describe,
  });
}

type Overview = Answer<"platform.overview">;

function describe(overview: Overview, paint: Paint): string {
  const parts = [totals(paint, overview), ...overview.machines.map((machine) => describeMachine(paint, machine))];
  if (overview.most_failing.length > 0) parts.push(failing(paint, overview.most_failing));
  if (overview.slowest.length > 0) parts.push(slowest(paint, overview.slowest));
  return parts.join("\n\n");
}

function totals(paint: Paint, overview: Overview): string {
  const { organizations, projects, deployments_today: today, databases, backups, domains, capacity } = overview;
  const share = ({ requested, available }: { requested: number; available: number }, show: (value: number) => string) =>
    `${show(requested)} requested, ${show(available)} available`;
  return facts(paint, [
    [
      "platform",
      `Berth ${overview.version}, ${paintStatus(paint, overview.status)}, ${counted(overview.open_alerts, "open alert")}`,
    ],
    ["organizations", `${organizations.total}, ${organizations.suspended} suspended`],
    ["projects", `${projects.total}, ${projects.serving} serving, ${projects.deleted} deleted`],
    ["replicas", String(overview.replicas)],
    [
      "today",
      `${counted(today.total, "deployment")}: ${today.succeeded} went live, ${today.failed} failed, ${today.in_progress} under way`,
    ],
    ["databases", `${databases.total}, ${databases.failed} failed`],
    ["backups", `${backups.total}, ${size(backups.size_bytes)}`],
    ["hostnames", `${domains.total}, ${domains.serving} serving`],
    ["cron jobs", String(overview.cron_jobs)],
    ["memory", share(capacity.memory_bytes, size)],
    ["processors", share(capacity.cpus, String)],
  ]);
}

function describeMachine(paint: Paint, machine: Overview["machines"][number]): string {
  const { disk } = machine;
  const kinds = Object.entries(disk.used_bytes ?? {}).filter(([, bytes]) => bytes > 0);
  return facts(paint, [
    [
      "machine",
      `${paint.bold(machine.name)}, Berth ${machine.version}, started ${relativeTime(machine.started_at)}, last seen ${relativeTime(machine.seen_at)}`,
    ],
    ["has", `${machine.cpus} processors, ${size(machine.memory_bytes)} memory`],
    ["disk", `${size(disk.available_bytes)} of ${size(disk.total_bytes)} free`],
    [
      "data",
      kinds.length === 0
        ? null
        : kinds
            .sort((a, b) => b[1] - a[1])
            .map(([kind, bytes]) => `${kind.replaceAll("_", " ")} ${size(bytes)}`)
            .join(", "),
    ],
    ["isolation", `${machine.runtime}, network: ${machine.network}, ${machine.isolation.join(", ") || "none"}`],
    ...machine.missing.map(
      ({ part, effect, remedy }) => [paint.yellow("missing"), oneLine(`${part}: ${effect} ${remedy}`)] as const,
    ),
  ]);
}

function failing(paint: Paint, projects: Overview["most_failing"]): string {
  const rows = projects.map((row) => [
    `${row.organization}/${row.project}`,
    ...[row.errors, row.crashes, row.failed_deployments, row.failed_cron_runs].map(String),
  ]);
  return table(paint, ["FAILING, 24 H", "ERRORS", "CRASHES", "DEPLOYMENTS", "CRON RUNS"], rows, "");
}

function slowest(paint: Paint, projects: Overview["slowest"]): string {
  const rows = projects.map((row) => [`${row.organization}/${row.project}`, `${row.mean_ms} ms`, String(row.requests)]);
  return table(paint, ["SLOWEST, 24 H", "MEAN", "REQUESTS"], rows, "");
}
