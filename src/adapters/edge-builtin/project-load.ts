import type { ChunkBudget } from "./body-relay.ts";

// The rate for very small chunks: 10,000 a second for all bodies of a project together, and 500 at once after a pause. With 20,000 at once,
// turns of the event loop took 10 to 30 ms when 40 clients requested such responses together.
const msPerChunk = 0.1;
const burstMs = 50;
// The most chunks of one body in one turn of the event loop. More would cost the edge far more time than their sender.
const chunksATurn = 256;
// The limit once the project has used up its share; with fewer chunks, the pauses would cost more than the chunks.
const chunksATurnInDebt = 64;
// Once this many bodies wait for their share, the project's new requests start one after the other: libuv accepts one connection a turn, so
// 200 such requests at once would keep every other project's new connections waiting.
const bodiesOfFlood = 4;
const startEveryMs = 4;

/** The current load that one project's visitors put on the edge. */
export class ProjectLoad implements ChunkBudget {
  /** The number of open requests and tunnels. */
  open = 0;
  #chunksPaidAtMs = 0;
  readonly #bodies: { readonly costMs: number; readonly resume: () => void }[] = [];
  readonly #starts: (() => void)[] = [];
  readonly #now: () => number;

  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  isOverShare(chunks: number): boolean {
    return chunks === chunksATurn || (chunks === chunksATurnInDebt && this.#isInDebt);
  }

  spend(chunks: number, resume: () => void): void {
    this.#bodies.push({ costMs: chunks * msPerChunk, resume });
    if (this.#bodies.length === 1) this.#awaitPayment(this.#now() - burstMs);
  }

  /** Starts a request: at once, or queued while the project's bodies bring more small chunks than its share. */
  start(request: () => void): void {
    if (this.#starts.length === 0 && this.#bodies.length < bodiesOfFlood) return request();
    this.#starts.push(request);
    if (this.#starts.length === 1) inLaterTurn(() => this.#startNext(), startEveryMs);
  }

  get #isInDebt(): boolean {
    return this.#bodies.length > 0 || this.#chunksPaidAtMs > this.#now();
  }

  /** Resumes one body per turn of the event loop, even when several have become due. */
  #awaitPayment(sinceMs: number): void {
    const next = this.#bodies[0];
    if (next === undefined) return;
    this.#chunksPaidAtMs = Math.max(sinceMs, this.#chunksPaidAtMs) + next.costMs;
    inLaterTurn(() => this.#resumeNext(), Math.max(0, this.#chunksPaidAtMs - this.#now()));
  }

  #resumeNext(): void {
    const next = this.#bodies.shift();
    this.#awaitPayment(this.#now());
    next?.resume();
  }

  #startNext(): void {
    const next = this.#starts.shift();
    if (this.#starts.length > 0) inLaterTurn(() => this.#startNext(), startEveryMs);
    next?.();
  }
}

/**
 * Runs a function in a later turn of the event loop. An overdue timer may fire in the turn that set it; the immediate after it never does.
 */
function inLaterTurn(run: () => void, afterMs: number): void {
  setTimeout(() => setImmediate(run), afterMs);
}
