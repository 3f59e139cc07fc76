import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough, type Readable } from "node:stream";
import type { Terminal, TerminalSize } from "../../ports/runtime.ts";

const session = readFileSync(join(import.meta.dirname, "terminal.sh"), "utf8");
const script = ["script", "--quiet", "--return", "--flush", "--echo", "always", "--command"];

/** A command to run in a terminal inside the sandbox, and its streams. */
interface InTerminal {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly input: Readable;
  /** The terminal's size changes, in the format that terminal.sh reads. */
  readonly control: Readable;
}

/** Runs a command in a terminal that script(1) creates inside the sandbox, so that its name, signals and end belong to the sandbox. */
export function inTerminal({ type, size, input, onResize }: Terminal, command: string): InTerminal {
  const control = new PassThrough();
  onResize((next) => void control.write(`${sizeWords(next)}\n`));
  return {
    argv: [...script, `set -- ${sizeWords(size)} ${quoted(command)}\n${session}`, "/dev/null"],
    // script(1) starts the shell named in SHELL.
    env: { TERM: type, SHELL: "/bin/sh" },
    input,
    control,
  };
}

const sizeWords = ({ columns, rows }: TerminalSize): string => `${columns} ${rows}`;
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
