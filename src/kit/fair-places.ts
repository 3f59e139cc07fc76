/** Who wants a place: an owner has several keys. */
export interface Place {
  readonly owner: string;
  readonly key: string;
}

export interface PlaceLimits {
  readonly all: number;
  /** Fewer than `all`, so that no owner holds every place. */
  readonly perOwner: number;
  /** An owner with so many waiting gets no more in. */
  readonly waitingPerOwner: number;
}

export interface FairPlaces {
  /** Waits for a place; null: too many of the owner wait already. Rejects with the signal's reason. The result gives the place back. */
  take(place: Place, signal: AbortSignal): Promise<(() => void) | null>;
}

interface Waiting {
  readonly place: Place;
  readonly enter: (leave: () => void) => void;
}

/** A few places: one at a time for a key, a part of them for an owner. The owner with the fewest comes first, then the order of the calls. */
export function createFairPlaces(limits: PlaceLimits): FairPlaces {
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
      // A caller may ask twice for the same thing: each has an entry of its own.
      const entry = { ...next.place };
      taken.add(entry);
      next.enter(() => {
        if (taken.delete(entry)) admit();
      });
    }
  }

  return {
    async take(place, signal) {
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
