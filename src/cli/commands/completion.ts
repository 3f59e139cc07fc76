import { Argument, type Command } from "commander";
import { addCommand } from "../command-tree.ts";
import { completionWords, pathsWithWords } from "../completion-words.ts";
import type { CliContext } from "../context.ts";
import { bashCompletion, fishCompletion, zshCompletion, type CompletionNode } from "../render/completion.ts";

const scripts = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion };

/** Adds `berth completion`: prints a completion script for a shell, generated from the current command tree. */
export function addCompletion(program: Command, ctx: CliContext): void {
  const examples = [
    "berth completion bash > ~/.local/share/bash-completion/completions/berth",
    'berth completion zsh > "${fpath[1]}/_berth"',
    "berth completion fish > ~/.config/fish/completions/berth.fish",
  ];
  addCommand(program, { usage: "completion", summary: "Print a completion script for a shell", examples })
    .addArgument(new Argument("<shell>", "which shell").choices(Object.keys(scripts)))
    .action((shell: keyof typeof scripts) => ctx.output.raw(scripts[shell](nodesOf(program), pathsWithWords)));
  addWords(program, ctx);
}

/** Adds the command that the scripts call for words that only the platform knows. It prints no errors, because a completing shell shows none. */
function addWords(program: Command, ctx: CliContext): void {
  program
    .command("complete [words...]", { hidden: true })
    .description("Print the project names, keys and the like that may follow")
    .action(async (before: string[]) => {
      const words = await completionWords(ctx, before).catch(() => []);
      ctx.output.raw(words.map((word) => `${word}\n`).join(""));
    });
}

/** Returns every command with what may follow it: subcommands, options and fixed words. */
function nodesOf(command: Command, path: readonly string[] = []): CompletionNode[] {
  const help = command.createHelp();
  const children = help.visibleCommands(command).filter((child) => child.name() !== "help");
  const words = children.map((child) => ({ word: child.name(), summary: child.description() }));
  const choices = command.registeredArguments
    .flatMap((argument) => argument.argChoices ?? [])
    .map((word) => ({ word, summary: "" }));
  const options = help
    .visibleOptions(command)
    .map((option) => ({ word: option.long ?? option.short ?? "", summary: option.description }));
  const paths = [path, ...command.aliases().map((alias) => [...path.slice(0, -1), alias])];
  const own = (path.length === 0 ? [path] : paths).map((spelling) => ({
    path: spelling,
    words: [...words, ...choices],
    options,
  }));
  return [...own, ...children.flatMap((child) => nodesOf(child, [...path, child.name()]))];
}
