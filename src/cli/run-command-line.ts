import { CommanderError, type Command } from "commander";
import { CommandLineFault, pathOf } from "./command-tree.ts";
import { createContext, type CliContext } from "./context.ts";
import type { Environment } from "./environment.ts";
import { ApplicationExit, CliError, exitCodeOf, exitCodes, usageError } from "./failures.ts";
import { nearest } from "../client/nearest.ts";
import { ownCommandHint } from "./own-command.ts";
import { buildProgram } from "./program.ts";
import { renderError } from "./render/error.ts";

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

/**
 * Rejects a word that is no command, with the command that is probably meant. commander would pass it to the default command of its group,
 * which then rejects the word's own options, and would answer `--help` with the help of the group.
 */
function refuseUnknownCommand(program: Command, args: readonly string[]): void {
  const { operands, unknown } = program.parseOptions([...args]);
  let group = program;
  for (const [index, word] of operands.entries()) {
    if (group.commands.length === 0 || word === "help") return;
    const command = subcommand(group, word);
    if (command === undefined) throw unknownCommand(program, group, [word, ...operands.slice(index + 1), ...unknown]);
    group = command;
  }
}

const namesOf = (command: Command): string[] => [command.name(), ...command.aliases()];

type Words = readonly [string, ...string[]];

function unknownCommand(program: Command, group: Command, words: Words) {
  const [word] = words;
  const path = pathOf(group);
  // A word with an equals sign may hold a secret and is not repeated.
  const said = word.includes("=") ? "a command like that" : `the command '${word}'`;
  const nouns = program.commands.map((command) => command.name());
  const own = ownCommandHint(group === program ? words : [group.name(), ...words], nouns);
  const meant = commandsMeant(program, group, word).map(
    (command) => `\`${pathOf(subcommand(command, words[1] ?? "") ?? command)}\``,
  );
  const hint = meant.length > 0 ? `Did you mean ${meant.join(" or ")}?` : `\`${path} --help\` lists the commands.`;
  return usageError(`\`${path}\` does not know ${said}.`, own ?? hint);
}

/** Words for the same act; a group of commands has at most one of each list. */
const sameActs = [
  ["remove", "delete", "unset", "revoke", "rm", "destroy"],
  ["add", "create", "set", "new"],
  ["show", "info", "get", "describe"],
];

/** Returns the commands that the word probably means: for the same act before those spelled alike, so that `rm` is never `run`. */
function commandsMeant(program: Command, group: Command, word: string): readonly Command[] {
  const acts = sameActs.find((words) => words.includes(word)) ?? [];
  const named = (parent: Command, names: readonly string[]) =>
    names.flatMap((name) => subcommand(parent, name) ?? [])[0];
  const plural = `${word}s`;
  const act = named(group, [...acts, plural]) ?? named(program, [word, plural]);
  if (act !== undefined) return [act];
  if (acts.length > 0) return [];
  const elsewhere = commandsBelow(program, word);
  if (elsewhere.length > 0 && elsewhere.length < 4) return elsewhere;
  const similar = subcommand(group, nearest(word, group.commands.flatMap(namesOf)) ?? "");
  return similar === undefined ? [] : [similar];
}

const subcommand = (group: Command, name: string): Command | undefined =>
  group.commands.find((each) => namesOf(each).includes(name));

const commandsBelow = (group: Command, name: string): Command[] =>
  group.commands.flatMap((each) => [...(namesOf(each).includes(name) ? [each] : []), ...commandsBelow(each, name)]);
