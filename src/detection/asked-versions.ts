import semver from "semver";
import { asTable, parseToml } from "./parse-toml.ts";
import type { Asked } from "./package-json.ts";
import type { SourceTree } from "./source-tree.ts";

/** A version that a file of the source asks for, without comments. */
export interface AskedVersion extends Asked {
  /** A semver range; null if the text cannot be read. */
  readonly range: string | null;
}

interface Place {
  readonly file: string;
  /** Finds the version; without it, the file's first line is the version. */
  readonly pattern?: RegExp;
}

/** A tool whose version the source may ask for, with its names in .tool-versions and mise.toml. */
const tools = {
  node: { names: ["nodejs", "node"], places: [{ file: ".nvmrc" }, { file: ".node-version" }] },
  python: {
    names: ["python"],
    places: [
      { file: ".python-version" },
      { file: "runtime.txt" },
      { file: "Pipfile", pattern: /^python_(?:full_)?version[ \t]*=[ \t]*["']([^"'\n]*)["']/m },
    ],
  },
  ruby: { names: ["ruby"], places: [{ file: ".ruby-version" }] },
  go: {
    names: ["golang", "go"],
    places: [{ file: ".go-version" }, { file: "go.mod", pattern: /^toolchain[ \t]+go(\S+)/m }],
  },
  rust: { names: ["rust"], places: [] },
  php: {
    names: ["php"],
    places: [
      { file: ".php-version" },
      // config.platform, which holds names and versions alone.
      { file: "composer.json", pattern: /"platform"\s*:\s*\{[^}]{0,2000}?"php"\s*:\s*"([^"]*)"/ },
    ],
  },
  java: { names: ["java"], places: [{ file: ".java-version" }, { file: ".sdkmanrc", pattern: /^java=(\S+)/m }] },
  deno: { names: ["deno"], places: [{ file: ".deno-version" }, { file: ".dvmrc" }] },
} as const satisfies Record<string, { names: readonly string[]; places: readonly Place[] }>;

export type VersionedTool = keyof typeof tools;

/** Returns the versions that the source's files ask for, in the order in which they count. */
export function askedVersions(tree: SourceTree, tool: VersionedTool): AskedVersion[] {
  const { names, places } = tools[tool];
  const own: readonly Place[] = places;
  const found = own.flatMap(({ file, pattern }) => {
    const text = tree.text(file);
    const written = text === null ? null : pattern === undefined ? firstLine(text) : (pattern.exec(text)?.[1] ?? null);
    return written === null ? [] : [{ text: written, from: file }];
  });
  return [...found, ...inToolFiles(tree, names)].map((each) => ({
    ...{ text: each.text.slice(0, longestWish), from: each.from },
    range: rangeOf(each.text),
  }));
}

// Parsing a range takes quadratic time.
const longestWish = 256;

/** Returns the first line that is not a comment, without a comment at its end; null if there is none. */
function firstLine(text: string): string | null {
  const lines = text.split("\n").map((line) => line.split("#", 1)[0]?.trim() ?? "");
  return lines.find((line) => line !== "") ?? null;
}

function inToolFiles(tree: SourceTree, names: readonly string[]) {
  const lines = (tree.text(".tool-versions") ?? "")
    .split("\n")
    .map((line) => line.split("#", 1)[0]?.trim().split(/\s+/));
  const listed = lines.find((words) => words?.[1] !== undefined && names.includes(words[0] ?? ""))?.[1];
  const file = [".mise.toml", "mise.toml"].find((each) => tree.has(each)) ?? "mise.toml";
  const written = asTable(parseToml(tree.text(file) ?? "", file, "manifest_invalid")["tools"]);
  const inMise = names.map((name) => written[name]).find((value) => typeof value === "string");
  return [
    ...(listed === undefined ? [] : [{ text: listed, from: ".tool-versions" }]),
    ...(typeof inMise === "string" ? [{ text: inMise, from: file }] : []),
  ];
}

/** Reads `3.9`, `v20`, `python-3.9.18`, `ruby-3.2.1p1` and semver ranges. */
function rangeOf(text: string): string | null {
  if (text.length > longestWish) return null;
  const plain = text
    .toLowerCase()
    .replace(/^(?:python|ruby|go|php|[a-z]+)-(?=\d)/, "")
    .replace(/^v(?=\d)/, "");
  return semver.validRange(
    plain.replace(/^(\d+\.\d+\.\d+)\.\d.*$/, "$1").replace(/^(\d+(?:\.\d+){0,2})[-+._]?[a-z].*$/, "$1"),
  );
}

/** Returns a line for each version that is not what is used, or cannot be read. */
export function versionNotes(asked: readonly AskedVersion[], name: string, used: string): string[] {
  const version = semver.coerce(used)?.version;
  return asked.flatMap(({ text, from, range }) => {
    if (range === null)
      return [`${from} says ${JSON.stringify(text)}, which Berth cannot read: ${name} ${used} is used`];
    if (version === undefined || semver.satisfies(version, range)) return [];
    return [`${from} asks for ${name} ${text}: ${name} ${used} is used, the one of this machine`];
  });
}
