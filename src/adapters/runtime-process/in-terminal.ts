import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough, type Readable } from "node:stream";
import type { Terminal, TerminalSize } from "../../ports/runtime.ts";

const session = readFileSync(join(import.meta.dirname, "terminal.sh"), "utf8");
const script = ["script", "--quiet", "--return", "--flush", "--echo", "always", "--command"];

/** How a command runs in a terminal inside the sandbox. */
interface InTerminal {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly input: Readable;
  /** The sizes, as terminal.sh reads them. */
  readonly control: Readable;
}

/** script(1) makes the terminal inside the sandbox, so that its name, its signals and its end are the sandbox's own. */
export function inTerminal({ type, size, input, onResize }: Terminal, command: string): InTerminal {
  const control = new PassThrough();
  onResize((next) => void control.write(`${sizeWords(next)}\n`));
  return {
    argv: [...script, `set -- ${sizeWords(size)} ${quoted(command)}\n${session}`, "/dev/null"],
    // script(1) takes its shell from there.
    env: { TERM: type, SHELL: "/bin/sh" },
    input,
    control,
  };
}

const sizeWords = ({ columns, rows }: TerminalSize): string => `${columns} ${rows}`;
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
