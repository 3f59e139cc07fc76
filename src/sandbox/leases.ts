import { randomInt } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Numbers (ports, subnets) handed out to sandboxes. A number is a folder, so two processes never get the same one and a restart forgets none. */
export interface Leases {
  /** The number that `owner` has, or a free one for which `isFree` holds. Throws when there is none left. */
  claim(owner: string, isFree: (number: number) => Promise<boolean>): Promise<number>;
  /** The numbers that an owner has. */
  held(owner: string): readonly number[];
  release(number: number): void;
  owners(): readonly string[];
}

/**
 * Leases of `first` … `first + count - 1`, kept in `folder`. The search starts behind the last number given, also after a restart, so that
 * a number rests as long as possible: an edge may still send visitors to the address of its former owner.
 */
export function openLeases(folder: string, first: number, count: number): Leases {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const lastFile = `${folder}.last`;
  const start = () => (existsSync(lastFile) ? Number(readFileSync(lastFile, "utf8")) - first + 1 : randomInt(count));
  const entries = () => readdirSync(folder).map((name) => ({ number: Number(name), owner: ownerOf(folder, name) }));
  const held = (owner: string) => entries().flatMap((entry) => (entry.owner === owner ? [entry.number] : []));
  const release = (number: number) => rmSync(join(folder, String(number)), { recursive: true, force: true });
  const claim: Leases["claim"] = async (owner, isFree) => {
    const own = held(owner)[0];
    if (own !== undefined) return own;
    const from = start();
    for (let step = 0; step < count; step += 1) {
      const number = first + ((from + step) % count);
      if (!take(folder, number, owner)) continue;
      writeFileSync(lastFile, String(number));
      if (await isFree(number)) return number;
      release(number);
    }
    throw new Error(`no free number between ${first} and ${first + count - 1} is left in ${folder}`);
  };
  return { claim, held, release, owners: () => [...new Set(entries().map((entry) => entry.owner))] };
}

function take(folder: string, number: number, owner: string): boolean {
  const path = join(folder, String(number));
  try {
    mkdirSync(path);
  } catch {
    return false;
  }
  writeFileSync(join(path, "owner"), owner);
  return true;
}

/** Empty while the folder has no file yet, and after a crash at that point: the lease then has no owner. */
function ownerOf(folder: string, name: string): string {
  try {
    return readFileSync(join(folder, name, "owner"), "utf8");
  } catch {
    return "";
  }
}
