import type { ChunkBudget } from "./body-relay.ts";

// Of very small chunks: 20,000 a second for all bodies of a project together, and as many at once after a pause.
const msPerChunk = 0.05;
const burstMs = 1000;

/** What one project's visitors cost the edge at present. */
export class ProjectLoad implements ChunkBudget {
  /** Requests and tunnels now open. */
  open = 0;
  #chunksPaidAtMs = 0;

  spend(chunks: number): number {
    const now = performance.now();
    this.#chunksPaidAtMs = Math.max(now - burstMs, this.#chunksPaidAtMs) + chunks * msPerChunk;
    return Math.max(0, this.#chunksPaidAtMs - now);
  }
}
