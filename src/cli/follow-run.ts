import { setTimeout as sleep } from "node:timers/promises";
import type { Answer, Client } from "../contract/client.ts";
import type { CliContext } from "./context.ts";
import { ApplicationExit, CliError } from "./failures.ts";

type Found = Answer<"runs.get">;

interface Begun {
  readonly slug: string;
  readonly begun: Found;
}

/** Prints a command's output and exits with its result; Ctrl-C stops the command. */
export async function followRun(ctx: CliContext, client: Client, { slug, begun }: Begun): Promise<void> {
  const { number } = begun.run;
  try {
    const ended = await printRun(ctx, client, { slug, number, follow: true });
    if (ctx.options.json === true) ctx.output.result(ended, () => "");
    throw endOf(ended);
  } catch (fault) {
    if (!ctx.signal.aborted) throw fault;
    ctx.goesOn = `\`berth runs log ${number}\` shows what it wrote.`;
    await client.call("runs.cancel", { params: { slug, number: String(number) } });
    throw fault;
  }
}

function endOf({ run }: Found): Error {
  if (run.exit_code !== null) return new ApplicationExit(run.exit_code);
  const words = { timed_out: `did not end within ${run.timeout_seconds} s`, cancelled: "was cancelled" } as const;
  const how =
    run.status in words ? words[run.status as keyof typeof words] : "was interrupted by a stop of the platform";
  return new CliError("refused", run.status, { message: `The command ${how}.` });
}

const pauseMs = 300;

/** Prints the output of a command so far; with `follow`, until it ends. */
export async function printRun(
  ctx: CliContext,
  client: Client,
  { slug, number, follow }: { slug: string; number: number; follow: boolean },
): Promise<Found> {
  let offset = 0;
  for (;;) {
    const query = { offset };
    const found = await client.call("runs.get", {
      params: { slug, number: String(number) },
      query,
      signal: ctx.signal,
    });
    if (ctx.options.json !== true) ctx.output.application(found.output);
    const hasMore = found.next_offset !== offset;
    offset = found.next_offset;
    if (found.complete || (!follow && !hasMore)) return found;
    if (!hasMore) await sleep(pauseMs, undefined, { signal: ctx.signal });
  }
}
