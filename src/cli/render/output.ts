import type { GlobalOptions, Environment } from "../environment.ts";
import { createPaint, terminalText, type Paint } from "./text.ts";

/** The output of a command. Results go to stdout, everything else to stderr. */
export type Output = ReturnType<typeof createOutput>;

/** Creates the output of one run. Options are read at each write, because they are known only after parsing. */
export function createOutput({ stdout, stderr, plain }: Environment, options: GlobalOptions) {
  const coloured = (stream: NodeJS.WriteStream) => stream.isTTY === true && !plain && options.color !== false;
  const stdoutPaint = () => createPaint(coloured(stdout));
  const stderrPaint = () => createPaint(coloured(stderr));
  const say = (stream: NodeJS.WriteStream, text: string) => {
    if (text !== "") stream.write(`${text}\n`);
  };
  const applicationText = (text: string) =>
    options.raw === true ? text : terminalText(text, { colours: coloured(stdout) });
  return {
    /** Returns the text that `application` would write, to be part of a line. */
    applicationText,
    /** Writes text of an application or a build to stdout, without terminal control sequences unless `--raw` is given. */
    application: (text: string) => void stdout.write(applicationText(text)),
    stdoutPaint,
    stderrPaint,
    /** Writes text to stdout unchanged, whatever the options. */
    raw: (text: string) => void stdout.write(text),
    /** Returns whether stderr is a terminal, so that a line may be redrawn. */
    watched: () => stderr.isTTY === true && options.json !== true,
    /** Prints a sentence about what happened or what to do next; silent with `--json`. */
    note: (text: (paint: Paint) => string) => {
      if (options.json !== true) say(stderr, text(stderrPaint()));
    },
    /** Prints a command's result: with `--json` the API's own document, else the text for people. An undefined document prints nothing as JSON. */
    result: (document: unknown, text: (paint: Paint) => string) => {
      if (options.json !== true) say(stdout, text(stdoutPaint()));
      else if (document !== undefined) say(stdout, JSON.stringify(document, null, 2));
    },
  };
}
