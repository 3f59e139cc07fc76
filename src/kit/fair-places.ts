/** A request for a slot. An owner may have several keys; each key runs one at a time. */
export interface Place {
  readonly owner: string;
  readonly key: string;
}

export interface PlaceLimits {
  readonly all: number;
  /** Less than `all`, so that no owner can hold every slot. */
  readonly perOwner: number;
  /** An owner with this many waiting requests is refused. */
  readonly waitingPerOwner: number;
}

interface Waiting {
  readonly place: Place;
  readonly enter: (leave: () => void) => void;
}

/** Creates a limited number of slots: one per key, at most `perOwner` per owner. The owner with the fewest is served first. */
export function createFairPlaces(limits: PlaceLimits) {
  const taken = new Set<Place>();
  const waiting = new Set<Waiting>();
  const of = (owner: string) => [...taken].filter((place) => place.owner === owner).length;

  function isFree({ owner, key }: Place): boolean {
    return of(owner) < limits.perOwner && ![...taken].some((place) => place.key === key);
  }

  function admit(): void {
    while (taken.size < limits.all) {
      const free = [...waiting].filter(({ place }) => isFree(place));
      const next = free.toSorted((a, b) => of(a.place.owner) - of(b.place.owner))[0];
      if (next === undefined) return;
      waiting.delete(next);
      // A copy, because a caller may pass the same object twice.
      const entry = { ...next.place };
      taken.add(entry);
      next.enter(() => {
        if (taken.delete(entry)) admit();
      });
    }
  }

  return {
    /** Waits for a slot and returns a function that releases it; null when the owner has too many waiting requests. */
    async take(place: Place, signal: AbortSignal) {
      signal.throwIfAborted();
      const others = [...waiting].filter((each) => each.place.owner === place.owner);
      if (others.length >= limits.waitingPerOwner) return null;
      const { promise, resolve, reject } = Promise.withResolvers<() => void>();
      const mine = { place, enter: resolve };
      const leave = () => {
        waiting.delete(mine);
        reject(signal.reason as Error);
      };
      signal.addEventListener("abort", leave, { once: true });
      waiting.add(mine);
      admit();
      return promise.finally(() => signal.removeEventListener("abort", leave));
    },
  };
}
