import semver from "semver";
import { askedVersions } from "./asked-versions.ts";
import type { PackageJson } from "./package-json.ts";
import type { SourceTree } from "./source-tree.ts";

/** Chooses the Node version to run: the platform's own if it fits, else the newest that fits, even majors first. Null if none fits. */
export function chooseNodeVersion(range: string, own: string, known: readonly string[]): string | null {
  if (semver.satisfies(own, range)) return own;
  const fitting = known.filter((version) => semver.satisfies(version, range) && semver.prerelease(version) === null);
  const longTerm = fitting.filter((version) => semver.major(version) % 2 === 0);
  return semver.maxSatisfying(longTerm, range) ?? semver.maxSatisfying(fitting, range);
}

export interface NodeWish {
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

export interface NodeWishes {
  readonly wish: NodeWish | null;
  /** A line for each file whose version is not used. */
  readonly notes: readonly string[];
}

/** Returns the Node version that the source asks for: one that fits both the first and the second place that names one, else the first's. */
export function nodeWish(manifest: PackageJson, tree: SourceTree): NodeWishes {
  const all = [...manifest.nodeVersions, ...askedVersions(tree, "node")].map(({ text, from }) => ({
    ...{ range: nodeRange(text), text: text.slice(0, longestWish), from },
  }));
  const readable = all.flatMap(({ range, text, from }) =>
    range === null ? [] : [{ range, from: `${text} (${from})` }],
  );
  const [first, ...others] = readable;
  const unread = all.flatMap(({ range, text, from }) =>
    range === null ? [`${from} says ${JSON.stringify(text)}, which Berth cannot read`] : [],
  );
  if (first === undefined) return { wish: null, notes: unread };
  const [second] = others;
  const both = second === undefined ? null : intersection(first.range, second.range);
  const wish =
    both === null || second === undefined ? first : { range: both, from: `${first.from} and ${second.from}` };
  const unused = others.filter(({ range }) => !semver.intersects(range, wish.range));
  return { wish, notes: [...unread, ...unused.map(({ from }) => `Node.js ${from} is not used: ${wish.from} counts`)] };
}

function intersection(one: string, other: string): string | null {
  if (`${one}${other}`.includes("||") || !semver.intersects(one, other)) return null;
  return semver.validRange(`${one} ${other}`);
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
