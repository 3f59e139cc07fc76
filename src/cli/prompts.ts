import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import type { CliContext } from "./context.ts";
import type { Environment } from "./environment.ts";
import { CliError, usageError } from "./failures.ts";

export function canAsk({ environment }: CliContext): boolean {
  return environment.stdin.isTTY === true && environment.stderr.isTTY === true;
}

/** Asks for a line; with `hidden`, the input is not shown. Ctrl-C and Ctrl-D end the CLI. */
export async function ask(ctx: CliContext, question: string, hidden = false): Promise<string> {
  const { stdin, stderr } = ctx.environment;
  const shown = hidden ? new Writable({ write: (_chunk, _encoding, done) => done() }) : stderr;
  const lines = createInterface({ input: stdin, output: shown, terminal: true, historySize: 0 });
  if (hidden) stderr.write(question);
  else lines.setPrompt(question);
  try {
    return await new Promise<string>((resolve, reject) => {
      lines.prompt();
      lines.once("line", resolve).once("SIGINT", () => reject(interrupted()));
      lines.once("close", () => reject(interrupted()));
    });
  } finally {
    lines.close();
    if (hidden) stderr.write("\n");
  }
}

/** Reads a secret from stdin or, hidden, at a prompt. */
export async function askSecret(
  ctx: CliContext,
  what: string,
  from: { stdin: boolean; option: string },
): Promise<string> {
  // Remove the line break that `echo secret |` adds.
  if (from.stdin) return (await readStdin(ctx.environment)).replace(/\r?\n$/, "");
  if (!canAsk(ctx)) throw usageError(`${what}?`, `Give it on stdin: ${from.option} < secret.txt`);
  return ask(ctx, `${what}: `, true);
}

/** Continues only if the person types `name` or gave `--yes`, which is required without a terminal. Throws otherwise. */
export async function confirm(
  ctx: CliContext,
  what: string,
  question: { name: string; yes: boolean | undefined },
): Promise<void> {
  if (question.yes === true) return;
  if (!canAsk(ctx))
    throw usageError(`${what} The input is not a terminal, so Berth cannot ask you first.`, "Add --yes to go ahead.");
  const typed = await ask(ctx, `${what}\nType ${ctx.output.stderrPaint().bold(question.name)} to go on: `);
  if (typed.trim() !== question.name)
    throw new CliError("refused", "not_confirmed", {
      message: `Nothing was changed: you did not type ${question.name}.`,
    });
}

/** Reads all of stdin, at most 1 MiB. */
export async function readStdin({ stdin }: Environment): Promise<string> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of stdin as AsyncIterable<Buffer | string>) {
    const bytes = Buffer.from(chunk);
    sizeBytes += bytes.length;
    if (sizeBytes > maxInputBytes) throw usageError("The input is larger than 1 MiB.");
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString("utf8");
}

const maxInputBytes = 1024 * 1024;

function interrupted(): CliError {
  return new CliError("interrupted", "interrupted", { message: "Interrupted." });
}
