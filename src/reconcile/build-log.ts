import { cutLine, hideSecrets, withoutControls } from "../kit/log-lines.ts";
import { trimLast } from "../kit/trim-last.ts";
import type { Platform } from "./platform.ts";

/** Writes a build's log: lines in order, with secrets redacted, in batches. */
export type BuildLog = ReturnType<typeof createBuildLog>;

const tailLines = 30;

export type LogPlace = Pick<Platform, "log"> & { readonly ports: Pick<Platform["ports"], "logStore"> };

/** Creates a build log. If `buildId` is null, the log has no reader (a rollback has no build of its own) and lines are kept only for the tail. */
export function createBuildLog({ ports, log }: LogPlace, buildId: string | null, redact: (text: string) => string) {
  let waiting: string[] = [];
  let writing: Promise<void> = Promise.resolve();
  let scheduled = false;
  let hasLost = false;
  const tail: string[] = [];

  function write(): Promise<void> {
    scheduled = false;
    const lines = waiting;
    waiting = [];
    if (lines.length > 0 && buildId !== null) writing = writing.then(() => append(buildId, lines));
    return writing;
  }

  async function append(id: string, lines: readonly string[]): Promise<void> {
    try {
      await ports.logStore.appendBuild(id, lines);
    } catch (error) {
      if (!hasLost) log.error({ err: error, build: id }, "lines of a build's log could not be stored");
      hasLost = true;
    }
  }

  function line(text: string): void {
    const clean = cutLine(hideSecrets(shown(text), redact).trimEnd());
    waiting.push(clean);
    tail.push(clean);
    if (tail.length > tailLines) tail.shift();
    if (scheduled) return;
    scheduled = true;
    setImmediate(() => void write());
  }

  return {
    line,
    /** A step of the deploy: `-----> text`. */
    step: (text: string) => line(`-----> ${text}`),
    detail: (text: string) => line(`       ${text}`),
    problem: (text: string) => line(` !     ${text}`),
    /** Resolves once all lines are stored. Lines that can't be stored are lost: a full disk must not change the outcome of the work. */
    flush: write,
    /** Returns the newest lines, to include in a failure. */
    tail: () => [...tail],
  };
}

/** Returns the text as a terminal would finally show it: a release command must not control the pusher's terminal. */
function shown(text: string): string {
  const [indent = ""] = /^ */.exec(text) ?? [];
  const rewritten =
    trimLast(text.slice(indent.length), "\r")
      .split(/\r|\x1b\[2K(?:\x1b\[1?G)?/)
      .at(-1) ?? "";
  return indent + withoutControls(rewritten);
}
