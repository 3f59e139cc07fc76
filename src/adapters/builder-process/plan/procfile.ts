import { BuildRefused } from "../failure-codes.ts";

export interface Procfile {
  readonly web: string | null;
  readonly release: string | null;
  /** Process types that are declared but not run here. */
  readonly ignored: readonly string[];
}

const linePattern = /^([A-Za-z0-9_-]+):\s*(.*)$/;

/** Reads a Procfile: `<process>: <command>` a line, blank lines and `#` comments apart. Refuses with `procfile_invalid`, naming the line. */
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
  const ignored = [...commands.keys()].filter((name) => name !== "web" && name !== "release");
  return { web: commands.get("web") ?? null, release: commands.get("release") ?? null, ignored };
}

function parseLine(line: string, number: number): [string, string] {
  const match = linePattern.exec(line);
  if (!match) throw invalid(number, "it is not `<process>: <command>`");
  const [, name = "", command = ""] = match;
  if (command === "") throw invalid(number, `\`${name}\` has no command`);
  if (command.includes("\0")) throw invalid(number, "it holds a NUL byte");
  return [name, command];
}

function invalid(number: number, why: string): BuildRefused {
  return new BuildRefused("procfile_invalid", { summary: `Line ${number} of the Procfile cannot be read: ${why}.` });
}
