import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Trash } from "./trash.ts";

/** The copies of installed dependencies that lie ready for the next build of their project. Few, because they take real disk space. */
export interface Spares {
  /** A copy lies at this place now; the one that lay longest is removed when there are too many. */
  add(place: string): Promise<void>;
  /** Whether one lies there; it is the caller's then. */
  claim(place: string): boolean;
}

const mostSpares = 8;

/** Removes what an earlier process left: whether a build claimed it is unknown. */
export async function openSpares(cachesDir: string, trash: Trash): Promise<Spares> {
  for (const project of await namesIn(cachesDir)) {
    const installs = join(cachesDir, project, "installs");
    for (const key of await namesIn(installs)) await trash.discard(join(installs, key, "spare"));
  }
  const places = new Set<string>();
  return {
    async add(place) {
      places.add(place);
      const [oldest] = places;
      if (places.size <= mostSpares || oldest === undefined) return;
      places.delete(oldest);
      await trash.discard(oldest);
    },
    claim: (place) => places.delete(place),
  };
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}
