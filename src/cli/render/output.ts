import type { GlobalOptions, Environment } from "../environment.ts";
import { createPaint, type Paint } from "./paint.ts";
import { terminalText } from "./text.ts";

/** Where commands speak to. What was asked for goes to stdout; everything said along the way goes to stderr. */
export interface Output {
  /** The result of a command: the API's own document with `--json`, else the text for people. Undefined documents print nothing as JSON. */
  readonly result: (document: unknown, text: (paint: Paint) => string) => void;
  /** A sentence about what happened or what to do next; silent with `--json`. */
  readonly note: (text: (paint: Paint) => string) => void;
  /** Text to stdout exactly as it is, whatever the options. */
  readonly raw: (text: string) => void;
  /** Text of an application or a build to stdout: without what steers a terminal, unless `--raw` asks for every byte. */
  readonly application: (text: string) => void;
  /** The same text, to be part of a line. */
  readonly applicationText: (text: string) => string;
  /** Whether a person watches stderr, so that a line may be redrawn. */
  readonly watched: () => boolean;
  readonly stdoutPaint: () => Paint;
  readonly stderrPaint: () => Paint;
}

/** The output of one run. Options are looked at when something is written, since they are known only after parsing. */
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
