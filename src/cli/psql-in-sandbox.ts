import { openProject, type CliContext } from "./context.ts";
import { ApplicationExit, CliError } from "./failures.ts";
import { followRun } from "./follow-run.ts";
import { runInTerminal } from "./run-in-terminal.ts";
import { shellLine } from "./shell-line.ts";

/** A shell's exit code for a program that is not found. */
const notFoundCode = 127;
const sessionSeconds = 14_400;

/**
 * Runs psql as a one-off command beside the application, with the application's own login: for machines without psql. At a terminal it is
 * interactive; otherwise it only runs what its arguments say, because such a command has no input.
 */
export async function psqlInSandbox(
  ctx: CliContext,
  args: readonly string[],
  { database, branch }: { readonly database?: string; readonly branch?: string },
): Promise<void> {
  const terminal = ctx.environment.stdin.isTTY === true;
  if (branch !== undefined) throw missing("this machine");
  if (!terminal && !args.some((word) => /^(?:-c|--command|-l|--list|-V|--version)/.test(word)))
    throw missing("this machine");
  const { slug, client } = await openProject(ctx);
  ctx.output.note(() => "psql is not installed here; the application's sandbox runs it.");
  const other = database === undefined ? [] : ["env", `PGDATABASE=${database}`];
  const command = shellLine([...other, "psql", ...args]);
  const body = { command, timeout_seconds: sessionSeconds, wait_seconds: 0, terminal };
  const begun = await client.call("runs.create", { params: { slug }, body, signal: ctx.signal });
  try {
    if (terminal) return await runInTerminal(ctx, slug, begun.run.number);
    return await followRun(ctx, client, { slug, begun });
  } catch (fault) {
    if (fault instanceof ApplicationExit && fault.exitCode === notFoundCode)
      throw missing("this machine or in the application's image");
    throw fault;
  }
}

function missing(place: string): CliError {
  return new CliError("refused", "psql_missing", {
    message: `psql is not installed on ${place}.`,
    hint: "Install PostgreSQL's client (`apt install postgresql-client`, `brew install libpq`), use `berth db tunnel` with another client, or `berth db query`.",
  });
}
