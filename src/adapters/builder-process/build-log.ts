import { StringDecoder } from "node:string_decoder";
import { stripVTControlCharacters } from "node:util";
import { redactor } from "../../kit/redact.ts";

const tailLines = 30;
const longestLine = 10_000;
const detailIndent = " ".repeat(7);

/** The build's log in the shape that `git push` users know: `-----> step`, indented detail, ` !     error`. */
export interface BuildLog {
  step(title: string): void;
  detail(text: string): void;
  error(text: string): void;
  /** Takes a command's output in pieces of any size; complete lines that `keeps` wants come out as detail. */
  output(keeps?: (line: string) => boolean): { write(chunk: Buffer): void; flush(): void };
  /** A text with the known secrets hidden, as the log would print it. */
  redact(text: string): string;
  /** The last lines that are not empty, as they were printed. */
  tail(): readonly string[];
}

/** Sends every line, with the given secrets hidden, to `onLine`. */
export function createBuildLog(onLine: (line: string) => void, secrets: Iterable<string>): BuildLog {
  const redact = redactor(secrets);
  const tail: string[] = [];
  const print = (prefix: string, text: string) => {
    for (const part of text.split("\n")) {
      const line = `${prefix}${cut(redact(part))}`.trimEnd();
      if (line !== "" && tail.push(line) > tailLines) tail.shift();
      onLine(line);
    }
  };
  const detail = (text: string) => print(detailIndent, text);
  return {
    step: (title) => print("-----> ", title),
    detail,
    error: (text) => print(" !     ", text),
    output: (keeps = () => true) => lineSplitter((line) => void (keeps(line) && detail(line))),
    redact,
    tail: () => [...tail],
  };
}

function cut(line: string): string {
  return line.length <= longestLine
    ? line
    : `${line.slice(0, longestLine)} [cut: ${line.length - longestLine} more characters]`;
}

/** Splits at line feeds. A carriage return starts the line anew, as on a terminal: of a progress bar only its end is kept. */
function lineSplitter(emit: (line: string) => void) {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  const emitLine = (line: string) => emit(clean(line));
  return {
    write(chunk: Buffer) {
      const lines = (rest + decoder.write(chunk)).split("\n");
      rest = (lines.pop() as string).slice(-2 * longestLine);
      for (const line of lines) emitLine(line);
    },
    flush() {
      rest += decoder.end();
      if (rest !== "") emitLine(rest);
      rest = "";
    },
  };
}

function clean(line: string): string {
  const shown = line.replace(/\r+$/, "").split("\r").at(-1) as string;
  // Control characters would let a build paint over the pusher's terminal.
  return stripVTControlCharacters(shown).replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, "");
}
