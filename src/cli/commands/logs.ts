import { setTimeout as sleep } from "node:timers/promises";
import { Option, type Command } from "commander";
import { logLevels, type LogLevel } from "../../contract/log-level.ts";
import type { Answer, Client } from "../../contract/client.ts";
import { addCommand } from "../command-tree.ts";
import { openProject, type CliContext } from "../context.ts";
import { isPassing, patienceMs } from "../follow.ts";
import { usageError } from "../failures.ts";
import { instant, wholeNumber } from "../input.ts";
import { table } from "../render/text.ts";

const pauseMs = 1000;
const mostLines = 5000;
/** A cursor before the oldest line. */
const beginning = "0:0";

export function addLogs(program: Command, ctx: CliContext): void {
  const examples = [
    "berth logs",
    "berth logs -f",
    "berth logs -f --process worker",
    "berth logs --since 1h --level error",
    "berth logs --field status=500 --field req.method=POST",
    "berth logs --counts --since 24h",
    'berth logs --since 2026-01-31T09:00:00Z --until "2026-01-31 10:30" --process worker',
    "berth logs -p demo --source build -n 1000",
  ];
  addCommand(program, { usage: "logs", summary: "Print the application's newest log lines", examples })
    .option("-f, --follow", "follow new lines until Ctrl-C; with --json, one JSON document per line")
    .option("-n, --lines <number>", "the newest lines, 1 to 5000 (default: 200, with --since or --until all)")
    .option("--since <time>", "the lines from a time on: 90s, 15m, 2h, 7d ago, or 2026-01-31T09:00:00Z")
    .option("--until <time>", "the lines before a time")
    .option("--grep <text>", "the lines that contain this text, in upper or lower case")
    .addOption(new Option("--level <level>", "the lines that name this level or a worse one").choices(logLevels))
    .option(
      "--field <name=value>",
      "the JSON lines with this field, such as status=500; repeated, with all of them",
      (field: string, before: readonly string[] | undefined) => [...(before ?? []), field],
    )
    .option(
      "--counts",
      "how many lines, errors and warnings there are over time, instead of the lines; default: the last hour",
    )
    .option("--process <type>", "only lines of this process type, such as web or worker")
    .option("--replica <number>", "only lines of the replicas with this number, 0 to 7")
    .addOption(new Option("--source <source>", "which log").choices(["runtime", "build"]).default("runtime"))
    .action(async (options: LogOptions) => {
      const { slug, client } = await openProject(ctx);
      const query = queryOf(options);
      if (options.counts === true) return printCounts(ctx, client, { slug, query });
      if (options.follow === true) return follow(ctx, client, { slug, query });
      if (options.lines === undefined && (query.since ?? query.until) !== undefined)
        return printRange(ctx, client, { slug, query });
      const page = await client.call("logs.list", { params: { slug }, query, signal: ctx.signal });
      if (page.lines.length === 0) await noteEmpty(ctx, client, { slug, query });
      return ctx.output.result(page, () => page.lines.map((line) => lineText(ctx, line)).join("\n"));
    });
}

function queryOf(options: LogOptions): Followed["query"] {
  if (options.follow === true && options.until !== undefined)
    throw usageError("--follow and --until cannot be combined: leave one of them out.");
  const { source, process, grep, level, field } = options;
  if (options.counts === true && (options.follow ?? options.lines) !== undefined)
    throw usageError("--counts counts whole ranges: leave out --follow and --lines.");
  if (options.counts === true && source === "build")
    throw usageError("Lines of a build have no time to count them by.");
  const range = { since: instant(options.since, "--since"), until: instant(options.until, "--until") };
  if (source === "build" && (range.since ?? range.until) !== undefined)
    throw usageError("Lines of a build have no time: leave out --since and --until.");
  const usual = (range.since ?? range.until) === undefined ? 200 : mostLines;
  const limit =
    options.lines === undefined ? usual : wholeNumber(options.lines, "--lines", { least: 1, most: mostLines });
  const replica =
    options.replica === undefined ? undefined : wholeNumber(options.replica, "--replica", { least: 0, most: 7 });
  return { source, limit, process, replica, grep, level, field, ...range };
}

/** Prints every stored line of a range, page by page. */
async function printRange(ctx: CliContext, client: Client, { slug, query }: Followed): Promise<void> {
  const all: Page["lines"] = [];
  for (let after: string | null = beginning; after !== null;) {
    const paged = { ...query, after };
    const page: Page = await client.call("logs.list", { params: { slug }, query: paged, signal: ctx.signal });
    if (ctx.options.json === true) all.push(...page.lines);
    else print(ctx, page);
    if (after === beginning && page.lines.length === 0) await noteEmpty(ctx, client, { slug, query });
    after = isFull(page) ? page.next_cursor : null;
  }
  if (ctx.options.json === true) ctx.output.result({ source: query.source, lines: all, next_cursor: null }, () => "");
}

const barWidth = 40;

async function printCounts(ctx: CliContext, client: Client, { slug, query }: Followed): Promise<void> {
  const { source: _, limit: _limit, ...filters } = query;
  const counts = await client.call("logs.counts", { params: { slug }, query: filters, signal: ctx.signal });
  if (counts.lines === 0) await noteEmpty(ctx, client, { slug, query: { ...query, since: counts.from } });
  const most = Math.max(1, ...counts.parts.map(({ lines }) => lines));
  ctx.output.result(counts, (paint) => {
    const rows = counts.parts.map(({ at, lines, errors, warnings }) => {
      const [all, failed] = [lines, errors].map((count) => Math.ceil((count / most) * barWidth)) as [number, number];
      const bar = `${paint.red("█".repeat(failed))}${"█".repeat(all - failed)}`;
      return [at.slice(0, 19).concat("Z"), `${lines}`, errors > 0 ? paint.red(`${errors}`) : "0", `${warnings}`, bar];
    });
    return table(paint, ["FROM", "LINES", "ERRORS", "WARNINGS", ""], counts.lines === 0 ? [] : rows, "");
  });
}

/** Explains on standard error why nothing is printed. */
async function noteEmpty(ctx: CliContext, client: Client, { slug, query }: Followed): Promise<void> {
  const { process, replica, since, until, grep, level, field } = query;
  if (query.source === "runtime" && process !== undefined) {
    const { processes } = await client.call("processes.list", { params: { slug } });
    const types = processes.map(({ type }) => type);
    if (!types.includes(process))
      return ctx.output.note(() => `${slug} has no process type ${process}; it has ${types.join(", ") || "none yet"}.`);
  }
  const isFiltered = [process, replica, since, until, grep, level, field].some((filter) => filter !== undefined);
  ctx.output.note(() => (isFiltered ? "No stored line matches." : `${slug} has no log lines yet.`));
}

/** Returns whether more lines may follow: a full page has 5000 lines or 2 MiB. Another ends the loop, even if the application keeps writing. */
function isFull({ lines }: Page): boolean {
  return lines.length === mostLines || JSON.stringify(lines).length > 1024 * 1024;
}

interface LogOptions {
  follow?: boolean;
  lines?: string;
  since?: string;
  until?: string;
  grep?: string;
  level?: LogLevel;
  field?: readonly string[];
  counts?: boolean;
  process?: string;
  replica?: string;
  source: "runtime" | "build";
}

type Page = Answer<"logs.list">;
interface Followed {
  readonly slug: string;
  readonly query: {
    readonly source: "runtime" | "build";
    readonly limit: number;
    readonly process: string | undefined;
    readonly replica: number | undefined;
    readonly since: string | undefined;
    readonly until: string | undefined;
    readonly grep: string | undefined;
    readonly level: LogLevel | undefined;
    readonly field: readonly string[] | undefined;
  };
}

/** Follows the log and resumes where a stream ended, by a restart or a proxy. Fails only if the platform stays unreachable. */
async function follow(ctx: CliContext, client: Client, { slug, query }: Followed): Promise<void> {
  ctx.goesOn = `You stopped reading; ${slug} keeps running and its log goes on.`;
  let after: string | undefined;
  let heardAtMs = Date.now();
  const pages = () => {
    const more = after === undefined ? query : { ...query, after, limit: 5000 };
    return client.follow("logs.list", { params: { slug }, query: more, signal: ctx.signal });
  };
  for (;;) {
    let lines = 0;
    try {
      for await (const page of pages()) {
        print(ctx, page);
        lines += page.lines.length;
        after = page.next_cursor ?? after;
        heardAtMs = Date.now();
      }
    } catch (fault) {
      ctx.signal.throwIfAborted();
      if (!isPassing(fault) || Date.now() - heardAtMs > patienceMs) throw fault;
    }
    if (lines === 0) await sleep(pauseMs, undefined, { signal: ctx.signal });
  }
}

function print(ctx: CliContext, { lines }: Page): void {
  const textOf = (line: Page["lines"][number]) =>
    ctx.options.json === true ? JSON.stringify(line) : lineText(ctx, line);
  ctx.output.raw(lines.map((line) => `${textOf(line)}\n`).join(""));
}

function lineText(ctx: CliContext, line: Page["lines"][number]): string {
  const paint = ctx.output.stdoutPaint();
  const origin = [
    line.at,
    line.deployment === null ? null : `#${[line.deployment, typeOf(line), line.replica].filter(isSaid).join(".")}`,
  ];
  const text = ctx.output.applicationText(line.text);
  return [paint.dim(origin.filter((part) => part !== null).join(" ")), text].filter((part) => part !== "").join(" ");
}

const isSaid = (part: string | number | null): boolean => part !== null;

/** `web` is not shown, because most projects have no other type. */
const typeOf = ({ process }: Page["lines"][number]): string | null => (process === "web" ? null : process);
