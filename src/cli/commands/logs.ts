import { setTimeout as sleep } from "node:timers/promises";
import { Option, type Command } from "commander";
import type { Answer, Client } from "../../contract/client.ts";
import { addCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { currentProject } from "../current-project.ts";
import { isPassing, patienceMs } from "../follow.ts";
import { wholeNumber } from "../input.ts";

const pauseMs = 1000;

/** `berth logs`: what the application, or its newest build, wrote. */
export function addLogs(program: Command, ctx: CliContext): void {
  const examples = [
    "berth logs",
    "berth logs -f",
    "berth logs -f --process worker",
    "berth logs -p demo --source build -n 1000",
  ];
  addCommand(program, { usage: "logs", summary: "Print the application's newest log lines", examples })
    .option("-f, --follow", "go on with new lines until Ctrl-C; with --json one line a document")
    .option("-n, --lines <number>", "how many lines, 1 to 5000", "200")
    .option("--process <type>", "the lines of this process type alone, such as web or worker")
    .option("--replica <number>", "the lines of the replicas with this number alone, 0 to 7")
    .addOption(new Option("--source <source>", "whose log").choices(["runtime", "build"]).default("runtime"))
    .action(async (options: LogOptions) => {
      const slug = await currentProject(ctx);
      const client = await ctx.client();
      const limit = wholeNumber(options.lines, "--lines", { least: 1, most: 5000 });
      const replica =
        options.replica === undefined ? undefined : wholeNumber(options.replica, "--replica", { least: 0, most: 7 });
      const query = { source: options.source, limit, process: options.process, replica };
      if (options.follow === true) return follow(ctx, client, { slug, query });
      const page = await client.call("logs.list", { params: { slug }, query, signal: ctx.signal });
      return ctx.output.result(page, () => page.lines.map((line) => lineText(ctx, line)).join("\n"));
    });
}

interface LogOptions {
  follow?: boolean;
  lines: string;
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
  };
}

/**
 * Goes on where it stopped when a stream ends: the platform was started anew, or something in between allows no streams. Only a platform
 * that stays away ends it.
 */
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

/** Of `web`, which most projects have alone, nothing is said. */
const typeOf = ({ process }: Page["lines"][number]): string | null => (process === "web" ? null : process);
