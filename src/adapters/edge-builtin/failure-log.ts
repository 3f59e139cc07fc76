import { writeLog } from "./write-log.ts";
import type { PageCode } from "../../ports/edge-pages.ts";

const forgetAfterMs = 60_000;
const mostLines = 200;

/**
 * Logs why requests failed, which a page never shows. Logs each kind of failure at most once a minute per project, because visitors retry.
 */
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
