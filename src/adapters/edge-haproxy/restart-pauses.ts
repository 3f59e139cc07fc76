const firstMs = 250;
const longestMs = 30_000;
const steadyAfterMs = 60_000;

/** When a process that ended may start again: the first time at once, then after more and more time, until it ran for a minute. */
export class RestartPauses {
  #count = 0;
  #lastAtMs = 0;

  get isOver(): boolean {
    return this.#count === 0 || Date.now() >= this.#lastAtMs + Math.min(longestMs, firstMs * 2 ** (this.#count - 1));
  }

  /** Counts a start. */
  note(): void {
    const wasSteady = Date.now() - this.#lastAtMs > steadyAfterMs;
    this.#count = wasSteady ? 1 : this.#count + 1;
    this.#lastAtMs = Date.now();
  }
}
