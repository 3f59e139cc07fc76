import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Trash } from "./trash.ts";

/** Copies of installed dependencies that are ready for their project's next build. There are few, because they use disk space. */
export type Spares = Awaited<ReturnType<typeof openSpares>>;

const mostSpares = 8;

/** Discards the copies of an earlier process, since it is unknown whether a build had claimed them. */
export async function openSpares(cachesDir: string, trash: Trash) {
  for (const project of await namesIn(cachesDir)) {
    const installs = join(cachesDir, project, "installs");
    for (const key of await namesIn(installs)) await trash.discard(join(installs, key, "spare"));
  }
  const places = new Set<string>();
  return {
    /** Registers a copy at this path; discards the oldest copy if there are too many. */
    async add(place: string) {
      places.add(place);
      const [oldest] = places;
      if (places.size <= mostSpares || oldest === undefined) return;
      places.delete(oldest);
      await trash.discard(oldest);
    },
    /** Returns whether there is a copy at this path; the caller then owns it. */
    claim: (place: string) => places.delete(place),
  };
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}
