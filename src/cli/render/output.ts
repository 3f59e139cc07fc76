import type { GlobalOptions, Environment } from "../environment.ts";
import { createPaint, type Paint } from "./paint.ts";
import { terminalText } from "./text.ts";

/** The output of a command. Results go to stdout, everything else to stderr. */
export interface Output {
  /** Prints a command's result: with `--json` the API's own document, else the text for people. An undefined document prints nothing as JSON. */
  readonly result: (document: unknown, text: (paint: Paint) => string) => void;
  /** Prints a sentence about what happened or what to do next; silent with `--json`. */
  readonly note: (text: (paint: Paint) => string) => void;
  /** Writes text to stdout unchanged, whatever the options. */
  readonly raw: (text: string) => void;
  /** Writes text of an application or a build to stdout, without terminal control sequences unless `--raw` is given. */
  readonly application: (text: string) => void;
  /** Returns the text that `application` would write, to be part of a line. */
  readonly applicationText: (text: string) => string;
  /** Returns whether stderr is a terminal, so that a line may be redrawn. */
  readonly watched: () => boolean;
  readonly stdoutPaint: () => Paint;
  readonly stderrPaint: () => Paint;
}

/** Creates the output of one run. Options are read at each write, because they are known only after parsing. */
export function createOutput({ stdout, stderr, plain }: Environment, options: GlobalOptions): Output {
  const coloured = (stream: NodeJS.WriteStream) => stream.isTTY === true && !plain && options.color !== false;
  const stdoutPaint = () => createPaint(coloured(stdout));
  const stderrPaint = () => createPaint(coloured(stderr));
  const say = (stream: NodeJS.WriteStream, text: string) => {
    if (text !== "") stream.write(`${text}\n`);
  };
  const applicationText = (text: string) =>
    options.raw === true ? text : terminalText(text, { colours: coloured(stdout) });
  return {
    applicationText,
    application: (text) => void stdout.write(applicationText(text)),
    stdoutPaint,
    stderrPaint,
    raw: (text) => void stdout.write(text),
    watched: () => stderr.isTTY === true && options.json !== true,
    note: (text) => {
      if (options.json !== true) say(stderr, text(stderrPaint()));
    },
    result: (document, text) => {
      if (options.json !== true) say(stdout, text(stdoutPaint()));
      else if (document !== undefined) say(stdout, JSON.stringify(document, null, 2));
    },
  };
}
