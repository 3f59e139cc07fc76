import type { ChunkBudget } from "./body-relay.ts";

// Of very small chunks: 10,000 a second for all bodies of a project together, and 500 at once after a pause. 20,000 at once held up the
// edge for turns of 10 to 30 ms where 40 clients asked for such answers together.
const msPerChunk = 0.1;
const burstMs = 50;
// Chunks of one body in one turn of the event loop. More would cost the edge far more time than their sender.
const chunksATurn = 256;
// The same once the project has used up its share; with fewer the pauses cost more than the chunks.
const chunksATurnInDebt = 64;
// With so many bodies that wait for their share, the project's new requests start one after the other: libuv accepts one connection a turn,
// so 200 such requests at once would keep every other project's new connections waiting.
const bodiesOfFlood = 4;
const startEveryMs = 4;

/** What one project's visitors cost the edge at present. */
export class ProjectLoad implements ChunkBudget {
  /** Requests and tunnels now open. */
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

  /** Starts a request: at once, or in turn while the project's bodies bring more small chunks than its share. */
  start(request: () => void): void {
    if (this.#starts.length === 0 && this.#bodies.length < bodiesOfFlood) return request();
    this.#starts.push(request);
    if (this.#starts.length === 1) inLaterTurn(() => this.#startNext(), startEveryMs);
  }

  get #isInDebt(): boolean {
    return this.#bodies.length > 0 || this.#chunksPaidAtMs > this.#now();
  }

  /** One body a turn of the event loop, also when the machine let several become due. */
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

/** A late timer may run in the turn that set it; what follows it by an immediate never does. */
function inLaterTurn(run: () => void, afterMs: number): void {
  setTimeout(() => setImmediate(run), afterMs);
}
