import { randomInt } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readTextOrEmpty } from "../kit/whole-file.ts";

/** Leases numbers (ports, subnets) to sandboxes. Each lease is a folder, so two processes never get the same number and leases survive a restart. */
export interface Leases {
  /** Returns the number that `owner` holds, else leases a free one for which `isFree` resolves to true. Throws if none is left. */
  claim(owner: string, isFree: (number: number) => Promise<boolean>): Promise<number>;
  held(owner: string): readonly number[];
  release(number: number): void;
  owners(): readonly string[];
}

/**
 * Opens the leases of `first` … `first + count - 1` in `folder`. The search starts after the last number leased, also after a restart, so
 * that a number stays unused as long as possible: an edge may still send requests to its former owner's address.
 */
export function openLeases(folder: string, first: number, count: number): Leases {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const lastFile = `${folder}.last`;
  const start = () => (existsSync(lastFile) ? Number(readFileSync(lastFile, "utf8")) - first + 1 : randomInt(count));
  const entries = () =>
    readdirSync(folder).map((name) => ({ number: Number(name), owner: readTextOrEmpty(join(folder, name, "owner")) }));
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
