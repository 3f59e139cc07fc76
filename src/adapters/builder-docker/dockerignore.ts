import { readdir, rm } from "node:fs/promises";
import { posix } from "node:path";
import { setImmediate } from "node:timers/promises";
import { BuildRefused } from "../../detection/failures.ts";

interface Rule {
  readonly pattern: Pattern;
  readonly keeps: boolean;
}

/** A compiled pattern: the kind of each position, and the character or class that it matches. */
type Pattern = ReturnType<typeof readPattern>;

/** `fork` continues at the next position or skips the two after it; the two `many` kinds repeat; all others match one character. */
const kinds = { literal: 0, oneInName: 1, oneOf: 2, manyInName: 3, many: 4, fork: 5 } as const;

const maxLength = 32 * 1024;
// A few seconds of processor time: more than .dockerignore files of real projects need for 100,000 files.
const usualSteps = 4e8;

/**
 * Parses a .dockerignore. The returned function tells whether a path is excluded, by itself or by a folder above it; the last matching rule
 * decides. A stranger's patterns take time linear in a path's length, and throw beyond `maxSteps` for all paths together.
 */
export function readDockerignore(text: string, maxSteps = usualSteps): (path: string) => boolean {
  if (text.length > maxLength) throw tooMuch(`The .dockerignore has more than ${maxLength / 1024} KiB.`);
  const rules = text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .flatMap(readRule);
  let steps = 0;
  return (path) => {
    let ignored = false;
    for (const { pattern, keeps } of rules) {
      const found = matchPath(pattern, path);
      steps += found.steps;
      if (steps > maxSteps) throw tooMuch("Matching the patterns of the .dockerignore takes too long.");
      if (found.matches) ignored = !keeps;
    }
    return ignored;
  };
}

const tooMuch = (summary: string) =>
  new BuildRefused("dockerfile_invalid", { summary, hint: "Shorten the .dockerignore, commit and push again." });

function readRule(line: string): Rule[] {
  if (line.startsWith("#")) return [];
  const text = line.trim();
  const keeps = text.startsWith("!");
  const path = posix.normalize(keeps ? text.slice(1).trim() : text).replace(/^\/+|(?<!\/)\/+$/g, "");
  if (text === "" || text === "!" || path === "" || path === ".") return [];
  return [{ pattern: readPattern(path), keeps }];
}

/** Reads Go's `filepath.Match` plus `**`, as Docker documents it. */
function readPattern(path: string) {
  const words = path.match(/\*\*\/?|\*|\?|\[(?:\\.|[^\]\\])+\]|\\.|[^]/gu) ?? [];
  const characters = words.flatMap((word) => (word === "**/" ? ["fork", "**", "/"] : [word]));
  const classes = characters
    .entries()
    .flatMap(([place, word]) => (isClass(word) ? [[place, classOf(word)] as const] : []));
  return {
    kinds: Uint8Array.from(characters, kindOf),
    characters: characters.map((word) => (word.startsWith("\\") ? word.slice(1) : word)),
    classes: new Map(classes),
  };
}

const isClass = (word: string): boolean => word.length > 1 && word.startsWith("[");

function kindOf(word: string): number {
  if (isClass(word)) return kinds.oneOf;
  if (word === "fork") return kinds.fork;
  if (word === "**") return kinds.many;
  if (word === "*") return kinds.manyInName;
  return word === "?" ? kinds.oneInName : kinds.literal;
}

/** Reads a class such as `[a-z]`. Docker refuses one with its bounds swapped; here it matches nothing. */
function classOf(word: string): RegExp {
  try {
    return new RegExp(`^${word}$`, "u");
  } catch {
    return /^(?!)/;
  }
}

/** Follows all alternatives of the pattern at once. It matches the path, or one of the folders above it. */
function matchPath(pattern: Pattern, path: string): { readonly matches: boolean; readonly steps: number } {
  const { kinds: kind } = pattern;
  const end = kind.length;
  const seen = new Uint16Array(end + 1);
  let now: number[] = [];
  let next: number[] = [];
  let steps = 0;
  let round = 1;
  const enter = (places: number[], start: number): void => {
    const starts = [start];
    for (let place = starts.pop(); place !== undefined; place = starts.pop())
      for (; seen[place] !== round; place += 1) {
        seen[place] = round;
        places.push(place);
        if (kind[place] === kinds.fork) starts.push(place + 3);
        else if (kind[place] !== kinds.many && kind[place] !== kinds.manyInName) break;
      }
  };
  enter(now, 0);
  for (const character of path) {
    if (character === "/" && seen[end] === round) return { matches: true, steps };
    round += 1;
    next.length = 0;
    for (const place of now) {
      if (kind[place] === kinds.many || (kind[place] === kinds.manyInName && character !== "/")) enter(next, place);
      else if (takes(pattern, place, character)) enter(next, place + 1);
    }
    steps += now.length;
    if (next.length === 0) return { matches: false, steps };
    [now, next] = [next, now];
  }
  return { matches: seen[end] === round, steps };
}

/** Returns whether a position that matches one character matches this one. */
function takes({ kinds: kind, characters, classes }: Pattern, place: number, character: string): boolean {
  if (kind[place] === kinds.literal) return characters[place] === character;
  if (kind[place] === kinds.oneInName) return character !== "/";
  return kind[place] === kinds.oneOf && classes.get(place)?.test(character) === true;
}

const slash = Buffer.from("/");
const turnMs = 10;

/** Removes what `ignores` matches below `root`. An ignored folder stays if a rule keeps something in it. */
export async function removeIgnored(root: string, ignores: (path: string) => boolean): Promise<void> {
  let turn = performance.now();
  const walk = async (place: Buffer, folder: string): Promise<boolean> => {
    let isEmpty = true;
    for (const entry of await readdir(place, { withFileTypes: true, encoding: "buffer" })) {
      // Yields between files, so that other requests are handled meanwhile.
      if (performance.now() - turn > turnMs) turn = (await setImmediate(), performance.now());
      const path = `${folder}${entry.name.toString("utf8")}`;
      const file = Buffer.concat([place, slash, entry.name]);
      const isRemoved = entry.isDirectory() ? (await walk(file, `${path}/`)) && ignores(path) : ignores(path);
      if (isRemoved) await rm(file, { recursive: true });
      else isEmpty = false;
    }
    return isEmpty;
  };
  await walk(Buffer.from(root), "");
}
