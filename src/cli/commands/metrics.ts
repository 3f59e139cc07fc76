import { Option, type Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { metricsRanges } from "../../contract/metrics.ts";
import { bytesText } from "../../kit/bytes-text.ts";
import { addCommand } from "../command-tree.ts";
import { currentProject, type CliContext } from "../context.ts";
import { facts, table, oneLine, relativeTime, type Paint } from "../render/text.ts";

type Metrics = Answer<"metrics.get">;

export function addMetrics(program: Command, ctx: CliContext): void {
  const examples = ["berth metrics", "berth metrics --range 7d", "berth metrics -p demo --json"];
  addCommand(program, {
    usage: "metrics",
    summary: "Show traffic, latency, page load times and use of resources",
    examples,
  })
    .addOption(new Option("--range <range>", "how far back").choices(metricsRanges).default("1h"))
    .action(async ({ range }: { range: Metrics["range"] }) => {
      const slug = await currentProject(ctx);
      const metrics = await (await ctx.client()).call("metrics.get", { params: { slug }, query: { range } });
      ctx.output.result(metrics, (paint) => describe(paint, metrics));
    });
}

function describe(paint: Paint, metrics: Metrics): string {
  const { total, buckets, page, range, deployments } = metrics;
  const { latency_ms: latency, page_load: load } = total;
  const curve = (pick: (bucket: Metrics["buckets"][number]) => number | null) => sparkline(buckets.map(pick));
  const errors = `${total.errors} (${(total.error_rate * 100).toFixed(1)} %)`;
  const answers = Object.entries(total.answers).flatMap(([kind, count]) => (count > 0 ? [`${kind}: ${count}`] : []));
  const head = facts(paint, [
    ["range", `${range}, since ${relativeTime(metrics.from)}`],
    ["requests", `${total.requests} (${total.requests_per_second}/s)  ${curve((bucket) => bucket.requests)}`],
    ["answers", answers.join("  ") || "none"],
    ["errors", total.errors > 0 ? paint.red(errors) : errors],
    ["latency", `p50 ${ms(latency.p50)}  p95 ${ms(latency.p95)}  p99 ${ms(latency.p99)}`],
    ["", `p95 ${curve((bucket) => bucket.latency_ms.p95)}`],
    ["bytes", `in ${bytesText(total.bytes_in)}  out ${bytesText(total.bytes_out)}`],
    [
      "page load",
      `${ms(load.total_ms)} on average, ${ms(load.slowest_ms)} at most, ${load.failed} of ${load.looks} failed`,
    ],
    ["last probe", page === null ? "none yet" : describePage(page)],
    ["deployments", deployments.map(({ number, at }) => `#${number} ${relativeTime(at)}`).join("  ") || "none"],
  ]);
  return `${head}\n\n${replicaTable(paint, metrics)}`;
}

function describePage(page: NonNullable<Metrics["page"]>): string {
  const what = page.ok ? `${page.http_status}` : oneLine(page.failure ?? "failed");
  const parts = [
    ["DNS", page.dns_ms],
    ["connect", page.connect_ms],
    ["TLS", page.tls_ms],
    ["first byte", page.first_byte_ms],
    ["total", page.total_ms],
  ] as const;
  const times = parts.flatMap(([name, value]) => (value === null ? [] : [`${name} ${ms(value)}`]));
  return [`${what} ${relativeTime(page.at)}`, ...times].join(", ");
}

function replicaTable(paint: Paint, { replicas }: Metrics): string {
  const rows = replicas.map((replica) => [
    `${replica.process}.${replica.replica}`,
    replica.deployment === null ? "-" : `#${replica.deployment}`,
    replica.ready ? paint.green("ready") : paint.yellow("not ready"),
    replica.memory_bytes === null ? "-" : bytesText(replica.memory_bytes),
    String(replica.processes ?? "-"),
    String(replica.restarts),
    sparkline(replica.buckets.map((bucket) => bucket.cpus)),
  ]);
  return table(
    paint,
    ["REPLICA", "DEPLOYMENT", "STATE", "MEMORY", "PROCESSES", "RESTARTS", "CPU"],
    rows,
    "No replica is running.",
  );
}

function ms(value: number | null): string {
  if (value === null) return "-";
  return value >= 1000 ? `${(value / 1000).toFixed(1)} s` : `${Math.round(value)} ms`;
}

const blocks = "▁▂▃▄▅▆▇█";
const mostCharacters = 60;

/** Draws numbers as a row of blocks, the highest one full; null leaves a gap. Too many are merged to the maximum of neighbours. */
export function sparkline(values: readonly (number | null)[]): string {
  const perCharacter = Math.ceil(values.length / mostCharacters);
  const groups = Array.from({ length: Math.ceil(values.length / perCharacter) }, (_, index) =>
    values.slice(index * perCharacter, (index + 1) * perCharacter).filter((value) => value !== null),
  );
  const heights = groups.map((group) => (group.length === 0 ? null : Math.max(...group)));
  const highest = Math.max(...heights.map((height) => height ?? 0), 0);
  const block = (height: number) => blocks[highest === 0 ? 0 : Math.round((height / highest) * (blocks.length - 1))];
  return heights.map((height) => (height === null ? " " : block(height))).join("");
}
