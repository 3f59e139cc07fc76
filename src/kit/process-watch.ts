import { capLog } from "./cap-log.ts";

const lookEveryMs = 250;
const askEveryMs = 500;

export interface WatchedProcess {
  readonly logFile: string;
  /** Returns whether the process has ended although it has to run. */
  hasEnded(): boolean;
  /** Starts the process again. Never rejects. */
  restart(): Promise<void>;
  /** Ends the process if it hangs. Never rejects. */
  endIfHung(): Promise<void>;
}

/** Watches a process: starts it again when it has ended, at once or after growing pauses, and has it ended when it hangs. */
export class ProcessWatch {
  readonly #watched: WatchedProcess;
  readonly #pauses = new RestartPauses();
  #timers: readonly NodeJS.Timeout[] | undefined;
  #restarting = false;
  #asking = false;

  constructor(watched: WatchedProcess) {
    this.#watched = watched;
  }

  get isRunning(): boolean {
    return this.#timers !== undefined;
  }

  start(): void {
    this.#timers ??= [
      setInterval(() => void this.#look(), lookEveryMs).unref(),
      setInterval(() => void this.#ask(), askEveryMs).unref(),
    ];
  }

  stop(): void {
    for (const timer of this.#timers ?? []) clearInterval(timer);
    this.#timers = undefined;
  }

  async #look(): Promise<void> {
    capLog(this.#watched.logFile);
    if (!this.#watched.hasEnded() || this.#restarting || !this.#pauses.isOver) return;
    this.#restarting = true;
    this.#pauses.note();
    await this.#watched.restart().finally(() => (this.#restarting = false));
  }

  async #ask(): Promise<void> {
    if (this.#asking || this.#restarting || this.#watched.hasEnded()) return;
    this.#asking = true;
    await this.#watched.endIfHung().finally(() => (this.#asking = false));
    await this.#look();
  }
}

const firstMs = 250;
const longestMs = 30_000;
const steadyAfterMs = 60_000;

/** Determines when a process that has stopped may be restarted: at once the first time, then after growing pauses, until it has run for a minute. */
export class RestartPauses {
  readonly #now: () => number;
  #count = 0;
  #lastAtMs = Number.NEGATIVE_INFINITY;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  get isOver(): boolean {
    const pauseMs = this.#count === 0 ? 0 : Math.min(longestMs, firstMs * 2 ** (this.#count - 1));
    return this.#now() >= this.#lastAtMs + pauseMs;
  }

  note(): void {
    const wasSteady = this.#now() - this.#lastAtMs > steadyAfterMs;
    this.#count = wasSteady ? 1 : this.#count + 1;
    this.#lastAtMs = this.#now();
  }
}
