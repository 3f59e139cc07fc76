const firstMs = 250;
const longestMs = 30_000;
const steadyAfterMs = 60_000;

/**
 * Determines when a process that has stopped may be restarted: at once the first time, then after growing pauses, until it has run for a
 * minute.
 */
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

  /** Records a start. */
  note(): void {
    const wasSteady = this.#now() - this.#lastAtMs > steadyAfterMs;
    this.#count = wasSteady ? 1 : this.#count + 1;
    this.#lastAtMs = this.#now();
  }
}
