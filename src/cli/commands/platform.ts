import { setTimeout as sleep } from "node:timers/promises";
import { Option, type Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { metricsRanges } from "../../contract/metrics.ts";
import { bytesText, counted } from "../../kit/bytes-text.ts";
import { addCommand, commandGroup, rowCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { CliError, usageError } from "../failures.ts";
import { paintStatus, facts, table, oneLine, relativeTime, type Paint } from "../render/text.ts";
import { withProgress } from "../render/progress.ts";
import { versionText } from "../../kit/own-version.ts";
import { sparkline } from "./metrics.ts";
import { addPlatformBackups } from "./platform-backups.ts";
import { addVersions } from "./platform-versions.ts";

export const addPlatform = commandGroup({
  name: "platform",
  summary: "Show what runs on the platform, move projects, back up and upgrade Berth (for the platform's operator)",
  commands: () => [
    rowCommand({
      row: "platform.overview",
      usage: "overview",
      summary: "Show what runs on the platform and what it uses",
      isDefault: true,
      examples: ["berth platform", "berth platform --json"],
      text: describe,
    }),
    rowCommand({
      row: "platform.metrics",
      usage: "metrics",
      summary: "Show what the machines and the edges did over time",
      examples: ["berth platform metrics", "berth platform metrics --range 7d --json"],
      input: (options) => ({ query: options }),
      text: describeMetrics,
      options: (command) =>
        command.addOption(new Option("--range <range>", "how far back").choices(metricsRanges).default("1h")),
    }),
    addRuntime,
    addVersions,
    addPlatformBackups,
  ],
});

function describeMetrics({ machines, edges, range }: Answer<"platform.metrics">, paint: Paint): string {
  const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);
  const newest = (values: readonly (number | null)[]) => values.findLast((value) => value !== null) ?? null;
  const bytesOf = (values: readonly (number | null)[], all: number) =>
    `${sparkline(values)}  ${bytesText(newest(values) ?? 0)} of ${bytesText(all)}`;
  return facts(paint, [
    ["range", range],
    ...machines.flatMap(({ name, cpus, memory_bytes: memory, disk_bytes: disk, used }): [string, string][] => [
      [oneLine(name, 40), `processors ${sparkline(used.cpus)}  ${(newest(used.cpus) ?? 0).toFixed(2)} of ${cpus}`],
      ["", `memory     ${bytesOf(used.memory_bytes, memory)}`],
      ["", `disk       ${bytesOf(used.disk_bytes, disk)}`],
    ]),
    ["requests", `${sparkline(edges.requests)}  ${sum(edges.requests)}, ${sum(edges.errors)} errors`],
    ["sent", `${sparkline(edges.bytes_out)}  ${bytesText(sum(edges.bytes_out))}`],
  ]);
}

type RuntimeOfProject = Answer<"platform.runtime">;

function addRuntime(platform: Command, ctx: CliContext): void {
  addCommand(platform, {
    usage: "runtime <project> [runtime]",
    summary:
      "Show which runtime ORGANIZATION/PROJECT runs in, or build its live commit for another one and switch to it",
    examples: ["berth platform runtime acme/shop", "berth platform runtime acme/shop docker"],
  }).action(async (project: string, runtime: string | undefined) => {
    const [org = "", slug = "", ...more] = project.split("/");
    if (org === "" || slug === "" || more.length > 0)
      throw usageError(`Name the project as ORGANIZATION/PROJECT, not \`${project}\`.`);
    const client = await ctx.client();
    const params = { org, slug };
    if (runtime !== undefined) await client.call("platform.move", { params, body: { runtime } });
    const look = () => client.call("platform.runtime", { params });
    const shown =
      runtime === undefined ? await look() : await withProgress(ctx, `Moving ${project}`, () => ended(look));
    ctx.output.result(shown, (paint) => describeRuntime(paint, shown));
    if (runtime !== undefined && shown.move?.status === "failed") throw moveFailed(shown.move);
  });
}

const lookEveryMs = 1000;

async function ended(look: () => Promise<RuntimeOfProject>): Promise<RuntimeOfProject> {
  for (;;) {
    const shown = await look();
    if (shown.move?.status === "done" || shown.move?.status === "failed") return shown;
    await sleep(lookEveryMs);
  }
}

function describeRuntime(paint: Paint, { runtime, available, move }: RuntimeOfProject): string {
  return facts(paint, [
    ["runtime", runtime ?? "nothing is live"],
    ["available", available.join(", ")],
    [
      "last move",
      move === null ? null : `to ${move.to}, ${relativeTime(move.requested_at)}: ${paintStatus(paint, move.status)}`,
    ],
  ]);
}

function moveFailed({ to, failure }: NonNullable<RuntimeOfProject["move"]>): CliError {
  const why = failure === null ? "Its build was cancelled or superseded." : failure.summary;
  const message = `The project was not moved to ${to} and serves as before. ${why}`;
  return new CliError("deploymentFailed", failure?.code ?? "move_failed", { message, hint: failure?.hint });
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
      `Berth ${versionText(overview)}, ${paintStatus(paint, overview.status)}, ${counted(overview.open_alerts, "open alert")}`,
    ],
    ["newer version", overview.newer_version === null ? null : `${overview.newer_version}: berth platform upgrade`],
    ["organizations", `${organizations.total}, ${organizations.suspended} suspended`],
    ["projects", `${projects.total}, ${projects.serving} serving, ${projects.deleted} deleted`],
    ["replicas", String(overview.replicas)],
    [
      "today",
      `${counted(today.total, "deployment")}: ${today.succeeded} went live, ${today.failed} failed, ${today.in_progress} under way`,
    ],
    ["databases", `${databases.total}, ${databases.failed} failed`],
    ["backups", `${backups.total}, ${bytesText(backups.size_bytes)}`],
    ["hostnames", `${domains.total}, ${domains.serving} serving`],
    ["cron jobs", String(overview.cron_jobs)],
    ["memory", share(capacity.memory_bytes, bytesText)],
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
    ["roles", machine.roles.join(", ") || null],
    ["has", `${machine.cpus} processors, ${bytesText(machine.memory_bytes)} memory`],
    ["disk", `${bytesText(disk.available_bytes)} of ${bytesText(disk.total_bytes)} free`],
    [
      "data",
      kinds.length === 0
        ? null
        : kinds
            .sort((a, b) => b[1] - a[1])
            .map(([kind, bytes]) => `${kind.replaceAll("_", " ")} ${bytesText(bytes)}`)
            .join(", "),
    ],
    [
      "isolation",
      machine.runtime === "none"
        ? null
        : `${machine.runtime}, network: ${machine.network}, ${machine.isolation.join(", ") || "none"}`,
    ],
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
