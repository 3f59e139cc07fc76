import { createLineSplitter, cutLine, hideSecrets, withoutControls } from "../kit/log-lines.ts";
import { redactor } from "../kit/redact.ts";

const tailLines = 30;
const detailIndent = " ".repeat(7);

/** A build's log in the format that `git push` users know: `-----> step`, indented detail, ` !     error`. */
export type BuildLog = ReturnType<typeof createBuildLog>;

/** Creates a log that sends every line to `onLine`, with the given secrets redacted. */
export function createBuildLog(onLine: (line: string) => void, secrets: Iterable<string>) {
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
    step: (title: string) => print("-----> ", title),
    detail,
    error: (text: string) => print(" !     ", text),
    /** Returns a splitter for a command's output in chunks of any size; complete lines accepted by `keeps` are logged as detail. */
    output: (keeps: (line: string) => boolean = () => true) =>
      createLineSplitter((line) => {
        const text = withoutControls(line);
        if (keeps(text)) detail(text);
      }),
    /** Redacts the known secrets, as in the log. */
    redact,
    /** Returns the last non-empty lines as printed. */
    tail: () => [...tail],
  };
}
