import type { Command } from "commander";
import { nearest } from "../client/nearest.ts";
import { pathOf } from "./command-tree.ts";
import { usageError } from "./failures.ts";
import { ownCommandHint } from "./own-command.ts";

/**
 * Rejects a word that is no command, with the command that is probably meant. commander would pass it to the default command of its group,
 * which then rejects the word's own options, and would answer `--help` with the help of the group.
 */
export function refuseUnknownCommand(program: Command, args: readonly string[]): void {
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

/** Returns all commands of this name, in whichever group. */
const commandsBelow = (group: Command, name: string): Command[] =>
  group.commands.flatMap((each) => [...(namesOf(each).includes(name) ? [each] : []), ...commandsBelow(each, name)]);
