import { setTimeout as sleep } from "node:timers/promises";
import { Option, type Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { addCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { currentProject } from "../current-project.ts";
import { patiently } from "../follow.ts";
import { wholeNumber } from "../input.ts";
import { terminalText } from "../render/text.ts";

const pauseMs = 1000;

/** `berth logs`: what the application, or its newest build, wrote. */
export function addLogs(program: Command, ctx: CliContext): void {
  const examples = ["berth logs", "berth logs -f", "berth logs -p demo --source build -n 1000"];
  addCommand(program, { usage: "logs", summary: "Print the application's newest log lines", examples })
    .option("-f, --follow", "go on with new lines until Ctrl-C; with --json one line a document")
    .option("-n, --lines <number>", "how many lines, 1 to 5000", "200")
    .addOption(new Option("--source <source>", "whose log").choices(["runtime", "build"]).default("runtime"))
    .action(async (options: LogOptions) => {
      const slug = await currentProject(ctx);
      const client = await ctx.client();
      const limit = wholeNumber(options.lines, "--lines", { least: 1, most: 5000 });
      const read = (after?: string) =>
        client.call("logs.list", {
          params: { slug },
          query: { source: options.source, limit: after === undefined ? limit : 5000, after },
          signal: ctx.signal,
        });
      const first = await read();
      if (options.follow !== true)
        return ctx.output.result(first, () => first.lines.map((line) => lineText(ctx, line)).join("\n"));
      return follow(ctx, first, read);
    });
}

interface LogOptions {
  follow?: boolean;
  lines: string;
  source: "runtime" | "build";
}

type Page = Answer<"logs.list">;

async function follow(ctx: CliContext, first: Page, read: (after?: string) => Promise<Page>): Promise<void> {
  let page = first;
  let cursor = first.next_cursor ?? undefined;
  for (;;) {
    for (const line of page.lines)
      ctx.output.raw(`${ctx.options.json === true ? JSON.stringify(line) : lineText(ctx, line)}\n`);
    if (page.lines.length === 0) await sleep(pauseMs, undefined, { signal: ctx.signal });
    page = await patiently(ctx, () => read(cursor));
    cursor = page.next_cursor ?? cursor;
  }
}

function lineText(ctx: CliContext, line: Page["lines"][number]): string {
  const paint = ctx.output.stdoutPaint();
  const origin = [
    line.at,
    line.deployment === null ? null : `#${line.deployment}${line.replica === null ? "" : `.${line.replica}`}`,
  ];
  const text = ctx.surroundings.stdout.isTTY ? terminalText(line.text) : line.text;
  return [paint.dim(origin.filter((part) => part !== null).join(" ")), text].filter((part) => part !== "").join(" ");
}
