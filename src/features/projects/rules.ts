import { randomInt } from "node:crypto";

const attempts = 5;
const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789";

/** Returns the hostnames to try for a new project. Only the first organization gets the plain one: else a suffix would reveal slugs. */
export function hostnamesFor(slug: string, appsDomain: string, isFirst: boolean): readonly string[] {
  const ends = Array.from({ length: attempts }, () => `-${randomEnd()}`);
  return (isFirst ? ["", ...ends] : ends).map((end) => `${slug}${end}.${appsDomain}`);
}

function randomEnd(): string {
  return Array.from({ length: 6 }, () => alphabet.charAt(randomInt(alphabet.length))).join("");
}
