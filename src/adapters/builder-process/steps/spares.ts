import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { removeTree } from "./remove-tree.ts";

/** The copies of installed dependencies that lie ready for the next build of their project. Few, because they take real disk space. */
export interface Spares {
  /** A copy lies at this place now; the one that lay longest is removed when there are too many. */
  add(place: string): Promise<void>;
  /** Whether one lies there; it is the caller's then. */
  claim(place: string): boolean;
}

const mostSpares = 8;

/** Removes what an earlier process left: nobody knows any more whether it was taken. */
export async function openSpares(cachesDir: string): Promise<Spares> {
  for (const project of await namesIn(cachesDir)) {
    const installs = join(cachesDir, project, "installs");
    for (const key of await namesIn(installs)) await removeTree(join(installs, key, "spare"));
  }
  const places = new Set<string>();
  return {
    async add(place) {
      places.add(place);
      const [oldest] = places;
      if (places.size <= mostSpares || oldest === undefined) return;
      places.delete(oldest);
      await removeTree(oldest);
    },
    claim: (place) => places.delete(place),
  };
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}
