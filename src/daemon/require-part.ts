import { StartRefused } from "./start-refused.ts";

/** A program of this machine without which Berth cannot run. */
export function requirePart(part: string | null, name: string): string {
  if (part === null) throw new StartRefused(`${name} was not found on this machine. Install it and start again.`);
  return part;
}
