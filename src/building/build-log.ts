import { createLineSplitter, cutLine, hideSecrets, withoutControls, type LineSplitter } from "../kit/log-lines.ts";
import { redactor } from "../kit/redact.ts";

const tailLines = 30;
const detailIndent = " ".repeat(7);

/** The build's log in the shape that `git push` users know: `-----> step`, indented detail, ` !     error`. */
export interface BuildLog {
  step(title: string): void;
  detail(text: string): void;
  error(text: string): void;
  /** Takes a command's output in pieces of any size; complete lines that `keeps` wants come out as detail. */
  output(keeps?: (line: string) => boolean): LineSplitter;
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
      const line = cutLine(`${prefix}${hideSecrets(part, redact)}`.trimEnd());
      if (line !== "" && tail.push(line) > tailLines) tail.shift();
      onLine(line);
    }
  };
  const detail = (text: string) => print(detailIndent, text);
  return {
    step: (title) => print("-----> ", title),
    detail,
    error: (text) => print(" !     ", text),
    output: (keeps = () => true) =>
      createLineSplitter((line) => {
        const text = withoutControls(line);
        if (keeps(text)) detail(text);
      }),
    redact,
    tail: () => [...tail],
  };
}
