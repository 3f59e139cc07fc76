import { StartRefused } from "./start-refused.ts";

/** Returns the path of a program without which Berth can't run. Throws `StartRefused` if it is missing. */
export function requirePart(part: string | null, name: string): string {
  if (part === null) throw new StartRefused(`${name} was not found on this machine. Install it and start again.`);
  return part;
}
