import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import type { Command, CommanderError } from "commander";
import { createContext } from "../src/cli/context.ts";
import { readEnvironment } from "../src/cli/environment.ts";
import { buildProgram } from "../src/cli/program.ts";
import { run } from "../src/kit/exec.ts";
import { ownFolder } from "../src/kit/own-version.ts";
import { testFolder } from "./support/test-folder.ts";

const pages = ["README.md", ...readdirSync(join(ownFolder, "docs")).map((name) => `docs/${name}`)].filter((page) =>
  page.endsWith(".md"),
);

/** A command that a page names, with the words of its arguments. */
interface Named {
  readonly page: string;
  readonly isWhole: boolean;
  readonly program: string;
  readonly words: readonly string[];
}

// A comment, the end of a command, where its output goes, or a word, whose parts may be quoted.
const token =
  /(?<comment>(?<!\S)#.*)|(?<end>\n|;|\|\|?|&&)|(?<file>[<>]{1,2}\s\S+)|(?<word>(?:"[^"]*"|'[^']*'|\$\([^)]*\)|<[\w-]+( [\w-]+)*>|[^\s"'|;&])+)/g;

function commandsOf(page: string): readonly Named[] {
  const text = readFileSync(join(ownFolder, page), "utf8");
  const shell = [...text.matchAll(/^ *```sh\n(.*?)^ *```/gms)].map(([, block = ""]) => block.replaceAll("\\\n", " "));
  // Within a sentence, a command may lack its arguments.
  const inline = [...text.replaceAll(/^ *```.*?^ *```/gms, "").matchAll(/`(berthd? [^`]+)`/g)].map(
    ([, line = ""]) => line,
  );
  return [
    ...shell.flatMap((line) => commandsIn(line, { page, isWhole: true })),
    ...inline.flatMap((line) => commandsIn(line, { page, isWhole: false })),
  ];
}

function commandsIn(text: string, about: Pick<Named, "page" | "isWhole">): readonly Named[] {
  const commands: string[][] = [[]];
  for (const { groups } of text.matchAll(token)) {
    if (groups?.["end"] !== undefined) commands.push([]);
    if (groups?.["word"] !== undefined) commands.at(-1)?.push(groups["word"].replaceAll(/["']/g, ""));
  }
  return commands.flatMap((all) => {
    const [path = "", ...words] = all.slice(all.findIndex((word) => !/^(?:sudo$|\w+=)/.test(word)));
    const program = basename(path);
    return ["berth", "berthd"].includes(program) && words[0] !== "<command>" ? [{ ...about, program, words }] : [];
  });
}

const named = pages.flatMap(commandsOf);
const ofProgram = (wanted: string) => named.filter(({ program }) => program === wanted);

test("each command of berth that a page names exists, with these arguments and options", async () => {
  const faults: string[] = [];
  for (const { page, isWhole, words } of ofProgram("berth")) {
    const program = buildProgram(createContext(readEnvironment(), new AbortController().signal));
    actOnNothing(program);
    await program.parseAsync(words, { from: "user" }).catch((error: CommanderError) => {
      if (isWhole || !lacks.has(error.code)) faults.push(`${page}: berth ${words.join(" ")}: ${error.message}`);
    });
  }
  assert.ok(ofProgram("berth").length > 100);
  assert.deepEqual(faults, []);
});

const lacks = new Set([
  "commander.missingArgument",
  "commander.optionMissingArgument",
  "commander.missingMandatoryOptionValue",
]);

function actOnNothing(command: Command): void {
  if (command.commands.length === 0) command.action(() => {});
  command.commands.forEach(actOnNothing);
}

test("each command of berthd that a page names is in its help, with these options", async () => {
  const faults: string[] = [];
  for (const { page, words } of ofProgram("berthd")) {
    const help = await helpOf(words[0] ?? "start");
    const unknown = words.filter((word) => /^[a-z-]+(?==|$)/.test(word) && !help.has(word.replace(/=.*/, "")));
    if (unknown.length > 0) faults.push(`${page}: berthd ${words.join(" ")}: ${unknown.join(", ")}`);
  }
  assert.ok(ofProgram("berthd").length > 10);
  assert.deepEqual(faults, []);
});

const helps = new Map<string, Promise<ReadonlySet<string>>>();

/** Returns the words of the help of a verb of berthd, and of its own. */
function helpOf(verb: string): Promise<ReadonlySet<string>> {
  const texts = async () => {
    const settings = { BERTH_DATA: join(testFolder("no-platform"), "data") };
    const env = { PATH: process.env["PATH"] ?? "", HOME: "/nonexistent", ...settings };
    const ask = async (...args: string[]) =>
      (await run({ file: process.execPath, args: [join(ownFolder, "src/daemon/main.ts"), ...args] }, { env })).stdout;
    return new Set(`${await ask("--help")} ${await ask(verb, "--help")}`.match(/-{0,2}[a-z][a-z-]*/g));
  };
  return helps.get(verb) ?? (helps.set(verb, texts()).get(verb) as Promise<ReadonlySet<string>>);
}
