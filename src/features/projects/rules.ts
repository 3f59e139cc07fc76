import { randomInt } from "node:crypto";

const attempts = 5;
const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789";

/**
 * Returns the hostnames to try for a new project, in order. Only the first organization gets the plain one: if every organization could, a
 * random suffix would reveal that another organization has the slug.
 */
export function hostnamesFor(slug: string, appsDomain: string, isFirst: boolean): readonly string[] {
  const ends = Array.from({ length: attempts }, () => `-${randomEnd()}`);
  return (isFirst ? ["", ...ends] : ends).map((end) => `${slug}${end}.${appsDomain}`);
}

function randomEnd(): string {
  return Array.from({ length: 6 }, () => alphabet.charAt(randomInt(alphabet.length))).join("");
}
