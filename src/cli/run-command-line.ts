import { CommanderError } from "commander";
import { CommandLineFault } from "./command-tree.ts";
import { createContext, type CliContext } from "./context.ts";
import type { Environment } from "./environment.ts";
import { ApplicationExit, CliError, exitCodeOf, exitCodes, usageError } from "./failures.ts";
import { nearest } from "../client/nearest.ts";
import { ownCommandHint } from "./own-command.ts";
import { buildProgram } from "./program.ts";
import { renderError } from "./render/error.ts";
import { refuseUnknownCommand } from "./unknown-command.ts";

/** Runs one command line and returns the exit code. `signal` aborts on Ctrl-C. */
export async function runCommandLine(
  args: readonly string[],
  environment: Environment,
  signal: AbortSignal,
): Promise<number> {
  const ctx = createContext(environment, signal);
  // Read `--json` before parsing, so that a wrong command line is reported in the requested format.
  const end = args.indexOf("--");
  ctx.options.json = args.slice(0, end === -1 ? undefined : end).includes("--json");
  const program = buildProgram(ctx);
  try {
    refuseUnknownCommand(program, args);
    await (args.length === 0 ? program.outputHelp() : program.parseAsync(args, { from: "user" }));
    return exitCodes.ok;
  } catch (fault) {
    const nouns = program.commands.map((command) => command.name());
    return answerFault(ctx, fault instanceof CommanderError ? fromCommander(fault, args, nouns) : fault);
  }
}

function answerFault(ctx: CliContext, fault: unknown): number {
  if (fault instanceof ApplicationExit) return fault.exitCode;
  // commander reports help and version as an error, too.
  if (fault instanceof CommanderError && fault.exitCode === 0) return exitCodes.ok;
  const interrupted = () => new CliError("interrupted", "interrupted", { message: "Interrupted.", hint: ctx.goesOn });
  const shown = ctx.signal.aborted ? interrupted() : fault;
  renderError(ctx, shown);
  return exitCodeOf(shown);
}

// Hides what follows an equals sign in arguments that commander repeats, because it may be a secret.
function fromCommander(
  fault: CommanderError,
  args: readonly string[],
  nouns: readonly string[],
): CommanderError | CliError {
  if (fault.exitCode === 0) return fault;
  const [sentence = "", suggestion] = fault.message.replace(/^error: /, "").split("\n");
  const harmless = sentence.replace(/( but got \d+): .*$/s, "$1.").replace(/'([^'=]*)=[^']*'/g, "'$1=…'");
  const text = harmless.charAt(0).toUpperCase() + harmless.slice(1);
  return usageError(
    /[.!?]$/.test(text) ? text : `${text}.`,
    ownCommandHint(unknownOption(fault, args, nouns), nouns) ??
      similar(fault, suggestion) ??
      (fault instanceof CommandLineFault ? fault.usage : "`berth --help` lists the commands."),
  );
}

/** Returns commander's suggestion, unless it differs so much from the typed word that it is hardly meant. */
function similar({ message }: CommanderError, suggestion = ""): string | undefined {
  const typed = /'([^'=]*)/.exec(message)?.[1] ?? "";
  const candidates = [...suggestion.replace(/^\(Did you mean (?:one of )?/, "").matchAll(/[\w-]+/g)].map(
    ([word]) => word,
  );
  return nearest(typed, candidates) === undefined ? undefined : suggestion.replace(/^\((.*)\)$/, "$1");
}

/** Returns a noun of the command line and its unknown option. */
function unknownOption({ code, message }: CommanderError, args: readonly string[], nouns: readonly string[]) {
  if (code !== "commander.unknownOption") return [];
  return [args.find((each) => nouns.includes(each)) ?? "", /'([^'=]*)/.exec(message)?.[1] ?? ""];
}
