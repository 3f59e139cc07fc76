import type { ChunkBudget } from "./body-relay.ts";

// Of very small chunks: 10,000 a second for all bodies of a project together, and 500 at once after a pause. 20,000 at once held up the
// edge for turns of 10 to 30 ms where 40 clients asked for such answers together.
const msPerChunk = 0.1;
const burstMs = 50;
// A body in more chunks than this a turn costs the edge far more time than its sender.
const chunksATurn = 256;
// The same while the project has used up its share. Fewer would cost more for pauses than for chunks.
const chunksATurnInDebt = 64;

/** What one project's visitors cost the edge at present. */
export class ProjectLoad implements ChunkBudget {
  /** Requests and tunnels now open. */
  open = 0;
  #chunksPaidAtMs = 0;
  readonly #now: () => number;

  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  isOverShare(chunks: number): boolean {
    return chunks === chunksATurn || (chunks === chunksATurnInDebt && this.#chunksPaidAtMs > this.#now());
  }

  spend(chunks: number): number {
    const now = this.#now();
    this.#chunksPaidAtMs = Math.max(now - burstMs, this.#chunksPaidAtMs) + chunks * msPerChunk;
    return Math.max(0, this.#chunksPaidAtMs - now);
  }
}
