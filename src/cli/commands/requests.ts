import { Option, type Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { requestSorts } from "../../contract/requests.ts";
import { bytesText } from "../../kit/bytes-text.ts";
import { addCommand } from "../command-tree.ts";
import { currentProject, type CliContext } from "../context.ts";
import { usageError } from "../failures.ts";
import { instant, wholeNumber } from "../input.ts";
import { table, oneLine, type Paint } from "../render/text.ts";

type Requests = Answer<"requests.list">;
type Paths = Answer<"requests.paths">;

interface Options {
  readonly path?: string;
  readonly status?: string;
  readonly slow?: string;
  readonly since?: string;
  readonly until?: string;
  readonly lines?: string;
  readonly paths?: boolean;
  readonly sort?: (typeof requestSorts)[number];
}

export function addRequests(program: Command, ctx: CliContext): void {
  const examples = [
    "berth requests",
    "berth requests --status 5xx --since 1h",
    "berth requests --path /cart --slow 500",
    "berth requests --paths --sort slow",
  ];
  addCommand(program, {
    usage: "requests",
    summary: "Show the newest requests, or each path's latency and errors",
    examples,
  })
    .option("--path <text>", "only paths that contain this text, in upper or lower case")
    .option("--status <status>", "only this status or class: 404, 5xx")
    .option("--slow <ms>", "only requests that took at least so many milliseconds")
    .option("--since <time>", "from a time on: 90s, 15m, 2h, 7d ago, or 2026-01-31T09:00:00Z")
    .option("--until <time>", "before a time")
    .option("-n, --lines <number>", "how many rows: 1 to 1000 requests (default: 100), 1 to 200 paths (default: 50)")
    .option("--paths", "a row for each path instead; ids and numbers in it are shown as :id")
    .addOption(new Option("--sort <order>", "with --paths, what comes first").choices(requestSorts))
    .action(async (options: Options) => {
      const query = queryOf(options);
      const params = { slug: await currentProject(ctx) };
      const client = await ctx.client();
      if (options.paths !== true) {
        const answer = await client.call("requests.list", { params, query });
        return ctx.output.result(answer, (paint) => requestTable(paint, answer));
      }
      const sort = options.sort ?? "count";
      const answer = await client.call("requests.paths", { params, query: { ...query, sort } });
      if (answer.sampled) ctx.output.note(() => "Only a part of the requests was kept, so the counts are estimates.");
      return ctx.output.result(answer, (paint) => pathTable(paint, answer));
    });
}

function queryOf({ path, status, slow, since, until, lines, paths, sort }: Options) {
  if (sort !== undefined && paths !== true) throw usageError("--sort needs --paths.");
  const most = paths === true ? 200 : 1000;
  return {
    path,
    status,
    slow_ms: slow === undefined ? undefined : wholeNumber(slow, "--slow", { least: 0, most: 3_600_000 }),
    since: instant(since, "--since"),
    until: instant(until, "--until"),
    limit: lines === undefined ? undefined : wholeNumber(lines, "--lines", { least: 1, most }),
  };
}

const none = "No request matches. The newest thousands are kept.";

function requestTable(paint: Paint, { requests }: Requests): string {
  const rows = requests.map((request) => [
    request.at,
    statusText(paint, request.status),
    request.method,
    oneLine(request.path, 100),
    ms(request.ms),
    bytesText(request.bytes),
    request.deployment === null ? "-" : `#${request.deployment}.${request.replica}`,
    request.request_id ?? "-",
  ]);
  return table(paint, ["TIME", "STATUS", "METHOD", "PATH", "TIME TAKEN", "BYTES", "REPLICA", "REQUEST ID"], rows, none);
}

function pathTable(paint: Paint, { paths }: Paths): string {
  const rows = paths.map(({ method, path, count, p50_ms, p95_ms, errors }) => [
    method,
    oneLine(path, 100),
    String(count),
    ms(p50_ms),
    ms(p95_ms),
    errors > 0 ? paint.red(`${errors}`) : "0",
  ]);
  return table(paint, ["METHOD", "PATH", "REQUESTS", "P50", "P95", "ERRORS"], rows, none);
}

function statusText(paint: Paint, status: number): string {
  if (status >= 500) return paint.red(`${status}`);
  return status >= 400 ? paint.yellow(`${status}`) : `${status}`;
}

const ms = (value: number): string => (value >= 1000 ? `${(value / 1000).toFixed(1)} s` : `${Math.round(value)} ms`);
