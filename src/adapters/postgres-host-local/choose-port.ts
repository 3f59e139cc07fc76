import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { writeWhole } from "./instance-files.ts";

/** The TCP ports for instances: `count` ports from `first` on. */
export interface PortRange {
  readonly first: number;
  readonly count: number;
}

/**
 * Returns the port of the instance in `dir/id`: its stored port, else one derived from its number or the next free one. Stores it, so that
 * it stays the same over restarts. `except` is a port that turned out to be in use.
 */
export async function choosePort(
  dir: string,
  id: string,
  number: number,
  options: { range: PortRange; except?: number | undefined },
): Promise<number> {
  const known = readPort(dir, id);
  if (known !== undefined && known !== options.except) return known;
  const used = new Set([options.except, ...portsOfOthers(dir, id)]);
  const { first, count } = options.range;
  for (let step = 0; step < count; step += 1) {
    const port = first + ((number + step) % count);
    if (used.has(port) || !(await isFree(port))) continue;
    writeWhole(join(dir, id, "port"), String(port));
    return port;
  }
  throw new Error(`no port between ${first} and ${first + count - 1} is free for a database`);
}

/** Below the range from which Linux picks ports of outgoing connections (32768–60999); one of those may be in use at any time. */
export const usualPorts: PortRange = { first: 15_500, count: 15_500 };

/** Returns the instance's stored port; undefined if it has none yet. */
export function readPort(dir: string, id: string): number | undefined {
  const file = join(dir, id, "port");
  return existsSync(file) ? Number(readFileSync(file, "utf8")) : undefined;
}

function portsOfOthers(dir: string, id: string): (number | undefined)[] {
  return readdirSync(dir)
    .filter((other) => other !== id)
    .map((other) => readPort(dir, other));
}

function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once("error", () => resolve(false));
    probe.listen({ port, host: "127.0.0.1", exclusive: true }, () => probe.close(() => resolve(true)));
  });
}
