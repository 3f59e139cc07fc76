const firstMs = 250;
const longestMs = 30_000;
const steadyAfterMs = 60_000;

/** When a process that ended may start again: the first time at once, then after more and more time, until it ran for a minute. */
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

  /** Counts a start. */
  note(): void {
    const wasSteady = this.#now() - this.#lastAtMs > steadyAfterMs;
    this.#count = wasSteady ? 1 : this.#count + 1;
    this.#lastAtMs = this.#now();
  }
}
