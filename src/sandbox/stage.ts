import { randomBytes } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";

/** What stores the changes to the first source of a stage: a copy of a template on disk, or memory; null: that source is mounted as it is. */
export type StageLayer = { readonly template: string } | { readonly memoryBytes: number } | null;

/** The staging place, in its own mount namespace, where stage.sh mounts a sandbox's sources. */
export interface Stage {
  readonly sources: readonly string[];
  readonly layer: StageLayer;
  /** Owner of the folder with the layer; null in a user namespace. */
  readonly owner: number | null;
  /** Paths of programs that the staging place must not hide. */
  readonly programs: readonly string[];
}

/** Returns the command prefix that sets up a stage, and the staged paths of its sources. */
export function stageWords({ sources, layer, owner, programs }: Stage): {
  readonly words: readonly string[];
  readonly staged: readonly string[];
} {
  const place = stagingPlace([...sources, ...programs]);
  const template = layer !== null && "template" in layer ? layer.template : "-";
  const image = template === "-" ? "-" : `${template}.${randomBytes(6).toString("hex")}`;
  const names = sources.map((source, index) => (statSync(source).isDirectory() ? `${index}/` : `${index}`));
  return {
    words: [
      ...["/bin/sh", join(import.meta.dirname, "stage.sh"), place, owner === null ? "-" : String(owner)],
      ...[template, image, stageTable(place, sources, layer === null ? null : layerLine(layer, place, image))],
      ...(layer === null ? [] : ["lower/", "layer/"]),
      ...names,
      "--",
    ],
    staged: sources.map((_, index) => `${place}/${index}`),
  };
}

/** Returns the mounts in the format of fstab(5). With a layer, the first source becomes the overlay's lower folder. */
export function stageTable(place: string, sources: readonly string[], layer: string | null): string {
  const target = (index: number) => (layer !== null && index === 0 ? `${place}/lower` : `${place}/${index}`);
  const binds = sources.map((source, index) => `${escaped(source)} ${target(index)} none rbind 0 0\n`);
  return [...(layer === null ? [] : [layer]), ...binds].join("");
}

function layerLine(layer: NonNullable<StageLayer>, place: string, image: string): string {
  return "template" in layer
    ? `${escaped(image)} ${place}/layer ext4 loop,nodev,nosuid,noinit_itable 0 0\n`
    : `berth ${place}/layer tmpfs nodev,nosuid,size=${layer.memoryBytes} 0 0\n`;
}

const escaped = (path: string): string =>
  path.replaceAll(/[\s\\#]/g, (mark) => `\\${mark.charCodeAt(0).toString(8).padStart(3, "0")}`);

/** Returns a folder that can be mounted over without hiding anything in `needed`. */
function stagingPlace(needed: readonly string[]): string {
  const places = ["/mnt", "/media", "/srv", "/opt", "/home", "/var/tmp", "/tmp"];
  const found = places.find((place) => existsSync(place) && !needed.some((path) => path.startsWith(`${place}/`)));
  if (!found) throw new Error(`no folder to stage a sandbox in: ${places.join(", ")}`);
  return found;
}
