import semver from "semver";
import type { PackageJson } from "./package-json.ts";
import type { SourceTree } from "./source-tree.ts";

/**
 * Chooses the Node version to run: the platform's own if it fits, else the newest that fits, LTS versions (even majors) first. Returns null
 * if none fits.
 */
export function chooseNodeVersion(range: string, own: string, known: readonly string[]): string | null {
  if (semver.satisfies(own, range)) return own;
  const fitting = known.filter((version) => semver.satisfies(version, range) && semver.prerelease(version) === null);
  const longTerm = fitting.filter((version) => semver.major(version) % 2 === 0);
  return semver.maxSatisfying(longTerm, range) ?? semver.maxSatisfying(fitting, range);
}

export interface NodeWish {
  /** A semver range. */
  readonly range: string;
  /** The version as written, and the file it is in; for the log. */
  readonly from: string;
}

// Code names of LTS releases, as used in .nvmrc files (https://github.com/nodejs/Release).
const codeNames: Readonly<Record<string, string>> = {
  argon: "4",
  boron: "6",
  carbon: "8",
  dubnium: "10",
  erbium: "12",
  fermium: "14",
  gallium: "16",
  hydrogen: "18",
  iron: "20",
  jod: "22",
  krypton: "24",
};

/**
 * Returns the Node version that the source asks for: `engines.node`, else .nvmrc, else .node-version. Null if none of them can be
 * understood.
 */
export function nodeWish(manifest: PackageJson, tree: SourceTree): NodeWish | null {
  const candidates = [
    { text: manifest.enginesNode, from: "engines.node in package.json" },
    { text: tree.text(".nvmrc"), from: ".nvmrc" },
    { text: tree.text(".node-version"), from: ".node-version" },
  ];
  for (const { text, from } of candidates) {
    const range = text === null ? null : nodeRange(text);
    if (range !== null) return { range, from: `${(text as string).trim().slice(0, longestWish)} (${from})` };
  }
  return null;
}

// Parsing a range takes quadratic time.
const longestWish = 256;

/** Converts a Node version as people write it to a semver range: `*` for `node` and `latest`, null if it is not a version. */
export function nodeRange(text: string): string | null {
  const wish = text.split("#")[0]?.trim().toLowerCase() ?? "";
  if (wish === "" || wish.length > longestWish) return null;
  if (["node", "stable", "latest", "current", "lts/*", "lts"].includes(wish)) return "*";
  const codeName = codeNames[wish.replace(/^lts\//, "")];
  if (codeName !== undefined) return codeName;
  return semver.validRange(wish.replace(/^v(?=\d)/, ""));
}
