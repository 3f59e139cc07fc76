import { posix } from "node:path";
import type { BuildCommands } from "../ports/builder.ts";
import { BuildRefused } from "./failures.ts";

export interface Procfile {
  readonly web: string | null;
  readonly release: string | null;
  /** The commands of all other process types, which run without a port. */
  readonly others: Readonly<Record<string, string>>;
}

const mostTypes = 16;

// Without a second repetition before the end: on a line of spaces it would take quadratic time.
const linePattern = /^([A-Za-z0-9_-]+):(.*)$/;

/** Parses a Procfile: `<process>: <command>` per line, blank lines, `#` comments. Refuses with `procfile_invalid`, naming the line. */
export function parseProcfile(text: string): Procfile {
  const commands = new Map<string, string>();
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  for (const [index, raw] of lines.entries()) {
    const line = raw.trim();
    if (line === "" || line.startsWith("#")) continue;
    const [name, command] = parseLine(line, index + 1);
    if (commands.has(name)) throw invalid(index + 1, `\`${name}\` is declared twice`);
    commands.set(name, command);
  }
  if (commands.size > mostTypes) throw invalid(lines.length, `it declares more than ${mostTypes} process types`);
  const { web = null, release = null, ...others } = Object.fromEntries(commands);
  return { web, release, others };
}

/** Returns the Procfile with the commands of the project's settings, which win over its own. */
export function withCommands(own: Procfile, { start, release, processes }: BuildCommands): Procfile {
  const others = { ...own.others, ...processes };
  if (Object.keys(others).length > mostTypes)
    throw new BuildRefused("procfile_invalid", {
      summary: `The Procfile and berth.json together declare more than ${mostTypes} process types.`,
    });
  return { web: start ?? own.web, release: release ?? own.release, others };
}

function parseLine(line: string, number: number): [string, string] {
  const match = linePattern.exec(line);
  if (!match) throw invalid(number, "it is not `<process>: <command>`");
  const [, name = "", rest = ""] = match;
  const command = rest.trimStart();
  if (command === "") throw invalid(number, `\`${name}\` has no command`);
  if (name.length > 32) throw invalid(number, `\`${name}\` is longer than 32 characters`);
  if (command.includes("\0")) throw invalid(number, "it holds a NUL byte");
  return [name, command];
}

function invalid(number: number, why: string): BuildRefused {
  return new BuildRefused("procfile_invalid", { summary: `Line ${number} of the Procfile cannot be read: ${why}.` });
}

const plainWord = /^[\w.@+/-]{1,4096}$/;
const interpreters = new Set(["node", "python", "python3", "sh", "bash"]);

/** Returns the program and first argument of a command; empty if only a shell could determine them. */
export function wordsOf(command: string): readonly string[] {
  const words = command.slice(0, 10_000).split(/\s+/).filter(Boolean);
  while (words[0] === "exec" || /^[A-Za-z_]\w*=[\w.,:/@-]*$/.test(words[0] ?? "")) words.shift();
  const end = words.slice(0, 2).findIndex((word) => !plainWord.test(word));
  return words.slice(0, end === -1 ? 2 : end);
}

/** Returns the application file that a command starts, relative to the application's folder; null if it names none. */
export function fileOf(command: string): string | null {
  const [program = "", argument = ""] = wordsOf(command);
  if (program.includes("/")) return inside(program);
  const isScript = interpreters.has(program) && argument !== "" && !argument.startsWith("-");
  return isScript ? inside(argument) : null;
}

function inside(path: string): string | null {
  const relative = posix.normalize(path.replace(/^\/app\//, ""));
  return relative.startsWith("/") || relative.startsWith("..") ? null : relative;
}

/** Throws BuildRefused for commands that start a missing file. `exists` receives paths relative to the application's folder. */
export function requireCommands(procfile: Procfile, exists: (path: string) => boolean, where: string): void {
  const { web, release, others } = procfile;
  for (const [name, command] of Object.entries({ web, release, ...others })) {
    const file = command === null ? null : fileOf(command);
    if (file === null || candidates(file).some(exists)) continue;
    throw new BuildRefused("procfile_command_missing", {
      ...(where === "build" ? { stage: "build" as const } : {}),
      summary: `The Procfile's \`${name}\` command starts ${file}, which ${where === "build" ? "the build has not created" : "is not in the repository, and the build does not create it"}.`,
    });
  }
}

/** Candidates in which Node looks for a file named without its extension. */
const candidates = (file: string): string[] => [
  file,
  `${file}.js`,
  posix.join(file, "index.js"),
  posix.join(file, "__main__.py"),
];
