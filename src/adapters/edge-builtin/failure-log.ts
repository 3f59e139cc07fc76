import { writeLog } from "./write-log.ts";
import type { PageCode } from "../../ports/edge-pages.ts";

const forgetAfterMs = 60_000;
const mostLines = 200;

/** Says why requests failed, in the log: a page never does. Once a minute for each kind of failure of a project, because visitors try again. */
export class FailureLog {
  readonly #said = new Set<string>();

  constructor() {
    setInterval(() => this.#said.clear(), forgetAfterMs).unref();
  }

  note(projectId: string, code: PageCode, reason: string): void {
    const key = `${projectId} ${code}`;
    if (this.#said.has(key) || this.#said.size >= mostLines) return;
    this.#said.add(key);
    writeLog(`${key}: ${reason}`);
  }
}
