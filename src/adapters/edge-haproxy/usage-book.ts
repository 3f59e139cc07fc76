import type { EdgeUsage } from "../../ports/edge.ts";

// The control plane reads every few seconds; an hour covers one that is away.
const keepEndedMs = 3_600_000;

/** The last counts of every worker, also of those that have ended. */
export class UsageBook {
  readonly #counters = new Map<string, { readonly usages: readonly EdgeUsage[]; readonly untilMs: number }>();

  note(counter: string, usages: readonly EdgeUsage[]): void {
    this.#counters.set(counter, { usages, untilMs: Date.now() + keepEndedMs });
  }

  show(): EdgeUsage[] {
    const now = Date.now();
    for (const [counter, { untilMs }] of this.#counters) if (untilMs < now) this.#counters.delete(counter);
    return Array.from(this.#counters.values(), ({ usages }) => usages).flat();
  }
}
