import { randomInt } from "node:crypto";

const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789";

/** The hostnames to try for a new project, in their order: the plain one, then some with random ends. */
export function hostnamesFor(slug: string, appsDomain: string, attempts = 5): readonly string[] {
  const ends = Array.from({ length: attempts }, () => `-${randomEnd()}`);
  return ["", ...ends].map((end) => `${slug}${end}.${appsDomain}`);
}

function randomEnd(): string {
  return Array.from({ length: 6 }, () => alphabet.charAt(randomInt(alphabet.length))).join("");
}
