import { readdirSync } from "node:fs";
import { join } from "node:path";
import { attempt } from "../../kit/attempt.ts";
import { folderBytesNow } from "../../kit/folder-bytes.ts";

/** How much of one engine's disk its running builds use. */
export type BuildDisks = ReturnType<typeof createBuildDisks>;

export interface RunningBuild {
  /** Names of the layers and cache folders that its commands have written so far. */
  layers(): readonly string[];
  /** Whether the engine itself writes for it now: pulls an image, copies, or downloads. */
  isServed(): boolean;
}

export interface TakenDisk {
  /** Null when measuring took too long. */
  bytes(): Promise<number | null>;
  leave(): void;
}

const layersFolder = "overlay2";
/** Folders of the engine's data in which new entries of a build appear. */
const places = [layersFolder, "buildkit/content/blobs/sha256", "buildkit/content/ingest", "tmp"];
const lookEveryMs = 500;

/**
 * Attributes the entries of an engine's data to its builds. What a command writes is the build's alone. What the engine writes itself names
 * no build: such an entry belongs in equal parts to the builds that the engine serves when the entry is first seen.
 */
export function createBuildDisks(dataRoot: string) {
  const builds = new Set<RunningBuild>();
  const shared = new Map<string, ReadonlySet<RunningBuild>>();
  let known = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const look = () => {
    const found = new Set(places.flatMap((place) => entriesOf(join(dataRoot, place))));
    for (const path of found.difference(known)) shared.set(path, ownersAmong(builds));
    for (const path of known.difference(found)) shared.delete(path);
    known = found;
  };
  const begin = () => {
    known = new Set(places.flatMap((place) => entriesOf(join(dataRoot, place))));
    timer = setInterval(look, lookEveryMs);
  };
  const end = () => {
    clearInterval(timer);
    shared.clear();
  };
  return {
    enter(build: RunningBuild) {
      if (builds.size === 0) begin();
      else look();
      builds.add(build);
      return {
        async bytes() {
          look();
          const pathOf = (layer: string) => join(dataRoot, layersFolder, layer);
          const own = build.layers().map(pathOf);
          const ofCommands = new Set([...builds].flatMap((each) => each.layers()).map(pathOf));
          const parts = Map.groupBy(
            [...shared].filter(([path, owners]) => owners.has(build) && !ofCommands.has(path)),
            ([, owners]) => owners.size,
          );
          const measured = [folderBytesNow(...own)];
          for (const [owners, entries] of parts)
            measured.push(
              share(
                entries.map(([path]) => path),
                owners,
              ),
            );
          const all = await Promise.all(measured);
          return all.includes(null) ? null : all.reduce((sum: number, bytes) => sum + (bytes ?? 0), 0);
        },
        leave() {
          if (builds.delete(build) && builds.size === 0) end();
        },
      };
    },
  };
}

function ownersAmong(builds: ReadonlySet<RunningBuild>): ReadonlySet<RunningBuild> {
  const served = [...builds].filter((build) => build.isServed());
  return new Set(served.length === 0 ? builds : served);
}

async function share(paths: readonly string[], owners: number): Promise<number | null> {
  const bytes = await folderBytesNow(...paths);
  return bytes === null ? null : bytes / owners;
}

function entriesOf(folder: string): string[] {
  return attempt(() => readdirSync(folder).map((name) => join(folder, name)), []);
}
