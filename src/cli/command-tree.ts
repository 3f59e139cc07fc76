import { CommanderError, type Command } from "commander";
import { usageError } from "./failures.ts";
import type { CliContext } from "./context.ts";
import { nearest } from "../client/nearest.ts";
import { ownCommandHint } from "./own-command.ts";

/** The help texts of one command. `usage` is its name and arguments: `show [slug]`. */
export interface CommandText {
  readonly usage: string;
  readonly summary: string;
  readonly examples: readonly string[];
  readonly alias?: string;
  /** Whether it runs when its group is named alone. */
  readonly isDefault?: boolean;
}

export function addCommand(parent: Command, text: CommandText): Command {
  const command = parent.command(text.usage, { isDefault: text.isDefault ?? false }).description(text.summary);
  nameInErrors(command);
  if (text.alias !== undefined) command.alias(text.alias);
  if (text.isDefault === true) refuseUnknownVerbs(parent, command);
  return command.addHelpText("after", `\nExamples:\n${text.examples.map((line) => `  $ ${line}`).join("\n")}`);
}

/** Adds a command, or a group of them, to the program or to a group. */
export type AddCommands = (parent: Command, ctx: CliContext) => unknown;

interface CommandGroup {
  readonly name: string;
  readonly summary: string;
  readonly alias?: string;
  readonly commands: () => readonly AddCommands[];
}

export function commandGroup({ name, summary, alias, commands }: CommandGroup): AddCommands {
  return (program, ctx) => {
    const group = program.command(name).description(summary);
    nameInErrors(group);
    if (alias !== undefined) group.alias(alias);
    for (const add of commands()) add(group, ctx);
  };
}

/** Adds several commands to the same parent. */
export function severalCommands(commands: () => readonly AddCommands[]): AddCommands {
  return (parent, ctx) => commands().forEach((add) => add(parent, ctx));
}

/** A wrong command line, with the usage of the command that rejected it. */
export class CommandLineFault extends CommanderError {
  readonly usage: string;
  constructor({ exitCode, code, message }: CommanderError, command: Command) {
    super(exitCode, code, message);
    const path = pathOf(command);
    // Other tools take the project as an argument here, so hint at `-p`.
    const project =
      code === "commander.excessArguments" && !path.includes(" ") ? " Name the project with `-p <slug>`." : "";
    this.usage = `Usage: berth ${path} ${command.usage()}.${project} \`berth ${path} --help\` says more.`;
  }
}

function nameInErrors(command: Command): void {
  command.exitOverride((fault) => {
    throw new CommandLineFault(fault, command);
  });
}

const pathOf = (command: Command): string =>
  command.parent?.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();

function hintForVerb(group: Command, word: string): string {
  const own = ownCommandHint([group.name(), word], []);
  if (own !== undefined) return own;
  const namesOf = (command: Command | null) => command?.commands.map((each) => each.name()) ?? [];
  const meant = verbMeant(word, namesOf(group));
  if (meant !== undefined) return `Did you mean \`berth ${group.name()} ${meant}\`?`;
  if (namesOf(group.parent).includes(word)) return `Did you mean \`berth ${word}\`?`;
  return `\`berth ${group.name()} --help\` lists the commands.`;
}

// Rejects unknown commands of a group: commander passes them to the default command, which would only report "too many arguments".
function refuseUnknownVerbs(group: Command, standard: Command): void {
  standard.allowExcessArguments(true).hook("preAction", () => {
    const word = standard.args[standard.registeredArguments.length];
    if (word === undefined) return;
    // A word with an equals sign may hold a secret and is not repeated.
    const said = word.includes("=") ? "a command like that" : `the command '${word}'`;
    throw usageError(`\`berth ${group.name()}\` does not know ${said}.`, hintForVerb(group, word));
  });
}

/** Words for the same act; a group of commands has at most one of each list. */
const sameActs = [
  ["remove", "delete", "unset", "revoke", "rm", "destroy"],
  ["add", "create", "set", "new"],
];

/** Returns the command that a word probably means: one for the same act before one that is spelled alike, so that `rm` is never `run`. */
export function verbMeant(word: string, verbs: readonly string[]): string | undefined {
  const acts = sameActs.find((words) => words.includes(word)) ?? [];
  return acts.find((act) => verbs.includes(act)) ?? (acts.length > 0 ? undefined : nearest(word, verbs));
}
