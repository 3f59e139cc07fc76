import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { start, type PipedStreams } from "../../kit/exec.ts";
import { edgeEnv } from "./edge-settings.ts";

/**
 * Starts the process that replaces this one, with the same listening sockets. A process that has dropped its privileges can't start one
 * that has them, so a small shell keeps them; the command that it runs is in a file that only the control plane can write.
 */
export class SuccessorStarter {
  readonly #shell: ChildProcess & PipedStreams;
  readonly #exited: Promise<unknown>;

  constructor(stateDir: string, listeningFds: readonly number[]) {
    const args = [join(import.meta.dirname, "start-successor.sh"), `${process.pid}`];
    this.#shell = start({ file: "/bin/sh", args }, { cwd: stateDir, env: edgeEnv(stateDir), fds: listeningFds });
    this.#exited = once(this.#shell, "close");
    this.#shell.stdin.on("error", () => {});
    this.#shell.stderr.pipe(process.stderr, { end: false });
  }

  /** Starts the successor; resolves with its pid. */
  async start(): Promise<number> {
    const said = once(this.#shell.stdout, "data");
    this.#shell.stdin.write("start\n");
    const [pid] = (await Promise.race([said, this.#exited.then(() => [""])])) as [Buffer | string];
    if (!/^\d+\n$/.test(String(pid))) throw new Error("no successor could be started");
    return Number(pid);
  }

  /** Closes the shell's copies of the listening sockets. */
  async end(): Promise<void> {
    this.#shell.stdin.end();
    await this.#exited;
  }
}
