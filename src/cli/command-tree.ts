import { CommanderError, type Command } from "commander";
import type { CliContext } from "./context.ts";

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
      code === "commander.excessArguments" && isOfProject(command) ? " Name the project with `-p <slug>`." : "";
    this.usage = `Usage: ${path} ${command.usage()}.${project} \`${path} --help\` says more.`;
  }
}

function nameInErrors(command: Command): void {
  command.exitOverride((fault) => {
    throw new CommandLineFault(fault, command);
  });
}

function isOfProject(command: Command): boolean {
  if (command.parent?.parent) return isOfProject(command.parent);
  return !["Access:", "The platform:"].includes(command.helpGroup());
}

/** Returns the words with which the command is called. */
export const pathOf = (command: Command): string =>
  command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
