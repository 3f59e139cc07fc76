import { CommanderError, type Command } from "commander";
import type { AnyInput, Answer, CallInput, Client } from "../contract/client.ts";
import { route, type RouteName } from "../contract/routes.ts";
import { currentProject, type CliContext } from "./context.ts";
import { confirm } from "./prompts.ts";
import { withProgress } from "./render/progress.ts";
import { oneLine, table, type Paint } from "./render/text.ts";

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

/** A command that calls one row. Its arguments are named as in the row's path; the project comes from `--project` or the folder. */
export interface RowCommand<N extends RouteName, Thing> extends CommandText {
  readonly row: N;
  /** Finds the thing that the first argument names; its id becomes the path's `id`. */
  readonly find?: (client: Client, given: string) => Promise<Thing & { readonly id: string }>;
  /** Builds query, body and further path parameters from the options and the command's arguments by name. */
  readonly input?: (options: Options, words: Words) => RowInput<N>;
  readonly progress?: (target: Target<Thing>) => string;
  readonly text: (answer: Answer<N>, paint: Paint, target: Target<Thing>) => string;
  /** Returns a hint at the next step, for stderr. */
  readonly note?: (answer: Answer<N>) => string | undefined;
  readonly options?: (command: Command) => Command;
}

/** The target of a command: its arguments by name, including the project's slug, and the thing that was found. */
export interface Target<Thing> {
  readonly words: Words;
  readonly thing: Thing;
  readonly options: Options;
  readonly baseUrl: string;
}

type Words = Readonly<Record<string, string>>;
type RowInput<N extends RouteName> = Partial<Omit<CallInput<N>, "params" | "signal">> & { readonly params?: Words };
type Options = Readonly<Record<string, never>>;

/** A command that calls the row and prints the response; if there is no response, the text goes to stderr. */
export function rowCommand<N extends RouteName, Thing = undefined>(given: RowCommand<N, Thing>): AddCommands {
  return (parent, ctx) => addRow(parent, ctx, given, async () => {});
}

interface ActCommand<N extends RouteName, Thing> extends RowCommand<N, Thing> {
  /** Returns what will happen, as a sentence. */
  readonly warning: (target: Target<Thing>) => string;
  /** Returns the name to type; by default that of the thing that was found, or the command's first argument. */
  readonly typed?: (target: Target<Thing>) => string;
}

/** Such a command with a confirmation first, which `--yes` skips. */
export function actCommand<N extends RouteName, Thing = undefined>(given: ActCommand<N, Thing>): AddCommands {
  return (parent, ctx) =>
    addRow(parent, ctx, given, async (target, options) => {
      const { name = Object.values(target.words)[0] } = (target.thing ?? {}) as { readonly name?: string };
      const typed = given.typed?.(target) ?? oneLine(name ?? "", 253);
      await confirm(ctx, given.warning(target), { name: typed, yes: options["yes"] });
    }).option("-y, --yes", "don't ask");
}

interface ListCommand<N extends RouteName, Item> extends Omit<RowCommand<N, unknown>, "text"> {
  readonly items: (answer: Answer<N>) => readonly Item[];
  /** Headings and their cells, from left to right. */
  readonly columns: Readonly<Record<string, (item: Item, paint: Paint, all: readonly Item[]) => string>>;
  /** Shown if the list has no items. */
  readonly empty: string;
}

/** A command that calls the row and prints its items as a table. A row with pages gets `--cursor`. */
export function listCommand<N extends RouteName, Item>({
  items,
  columns,
  empty,
  ...given
}: ListCommand<N, Item>): AddCommands {
  const hasPages = "cursor" in route(given.row).query.shape;
  const input = (options: Options, words: Words) => {
    const more: AnyInput | undefined = given.input?.(options, words);
    const query = { ...more?.query, ...(hasPages && { cursor: options["cursor"] }) };
    return { ...more, query } as never;
  };
  const text = (answer: Answer<N>, paint: Paint) => {
    const all = items(answer);
    const rows = all.map((item) => Object.values(columns).map((cell) => cell(item, paint, all)));
    return table(paint, Object.keys(columns), rows, empty);
  };
  const options = (command: Command) => {
    const own = given.options?.(command) ?? command;
    return hasPages ? own.option("--cursor <cursor>", "the page after an earlier one, by its next_cursor") : own;
  };
  return rowCommand({ note: nextPage, ...given, input, text, options });
}

export function nextPage(answer: unknown): string | undefined {
  const { next_cursor: cursor } = answer as { next_cursor?: string | null };
  return typeof cursor === "string" ? `There is more: --cursor ${cursor}` : undefined;
}

type Ask<Thing> = (target: Target<Thing>, options: Options) => Promise<void>;

function addRow<N extends RouteName, Thing>(
  parent: Command,
  ctx: CliContext,
  given: RowCommand<N, Thing>,
  ask: Ask<Thing>,
): Command {
  const row = route(given.row);
  const command = addCommand(parent, given);
  given.options?.(command);
  return command.action(async () => {
    const options = command.opts<Options>();
    const words = await wordsOf(ctx, command, row.path);
    const input: AnyInput = given.input?.(options, words) ?? {};
    const client = await ctx.client();
    const thing = (await given.find?.(client, command.args[0] ?? "")) as Thing;
    const target = { words, thing, options, baseUrl: client.baseUrl };
    await ask(target, options);
    const params = { ...paramsOf(row.path, words, thing), ...input.params };
    const call = () => client.send(row, { ...input, params, signal: ctx.signal }) as Promise<Answer<N>>;
    const answer = await (given.progress === undefined ? call() : withProgress(ctx, given.progress(target), call));
    const text = (paint: Paint) => given.text(answer, paint, target);
    if (answer === undefined) ctx.output.note(text);
    else ctx.output.result(answer, text);
    const note = given.note?.(answer);
    if (note !== undefined) ctx.output.note(() => note);
  });
}

async function wordsOf(ctx: CliContext, command: Command, path: string): Promise<Words> {
  const words = Object.fromEntries(
    command.registeredArguments.flatMap((argument, index) => {
      const word = command.args[index];
      return word === undefined ? [] : [[argument.name(), word] as const];
    }),
  );
  if (!path.includes("/projects/:slug")) return words;
  return { ...words, slug: await currentProject(ctx, words["slug"]) };
}

/** Returns the path parameters: each is the argument of that name, else a field of the thing that was found. */
function paramsOf(path: string, words: Words, thing: unknown): Words {
  const found = thing as { readonly id?: string } | undefined;
  const names = path.match(/(?<=:)\w+/g) ?? [];
  return Object.fromEntries(names.map((name) => [name, words[name] ?? found?.[name as "id"] ?? ""]));
}
