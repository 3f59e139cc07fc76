import { setImmediate } from "node:timers/promises";
import { cutLine, hideSecrets } from "../../kit/log-lines.ts";
import type { Redact } from "../../kit/redact.ts";

const turnMs = 10;

/**
 * Returns the lines as a log stores them. Lets other work through in between: to redact a flood of long lines with a project's thousand secrets
 * takes seconds.
 */
export async function redactLines(lines: readonly string[], redact: Redact): Promise<string[]> {
  const texts: string[] = [];
  let turn = performance.now();
  for (const line of lines) {
    if (performance.now() - turn > turnMs) turn = (await setImmediate(), performance.now());
    texts.push(cutLine(hideSecrets(line, redact)));
  }
  return texts;
}
