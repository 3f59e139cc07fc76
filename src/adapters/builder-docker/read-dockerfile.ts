import { BuildRefused } from "../../detection/failures.ts";

/** What the builder must know about a project's Dockerfile before the build. */
export interface Dockerfile {
  /** The text to build: the source with the scope argument declared in every stage. */
  readonly text: string;
  /** Names declared by `ARG`. */
  readonly args: readonly string[];
  /** Maps a line of `text` to the line of the source. */
  readonly originalLine: (line: number) => number;
  readonly notes: readonly string[];
}

/**
 * Reads a Dockerfile. A line `# syntax=` makes BuildKit fetch and run an image as its frontend: Docker's own images are removed, because
 * the engine includes that frontend; all others are refused. Takes time linear in the source's length, as this is a stranger's file.
 */
export function readDockerfile(source: string): Dockerfile {
  if (source.length > maxLength) throw invalid(`The Dockerfile has more than ${maxLength / 1024} KiB.`);
  const lines = linesOf(source);
  const { notes, escape } = takeDirectives(lines);
  const found = readInstructions(lines, escape);
  const ends = found.filter(({ name }) => name === "FROM").map(({ end }) => end);
  const args = found
    .filter(({ name }) => name === "ARG")
    .flatMap(({ rest }) => [...rest.matchAll(/(?:^|\s)([A-Za-z_]\w*)(?==|\s|$)/g)].map(([, name = ""]) => name));
  if (ends.length === 0) throw invalid("The Dockerfile has no `FROM` line.");
  const added = new Set(ends);
  return {
    text: lines.flatMap((line, index) => (added.has(index) ? [line, `ARG ${scopeArgument}`] : [line])).join("\n"),
    args: [...new Set(args)].filter((name) => name !== scopeArgument && !name.startsWith(settingsPrefix)),
    originalLine: (line) => line - ends.filter((end, count) => end + 1 + count < line).length,
    notes,
  };
}

const maxLength = 256 * 1024;
const invalid = (summary: string) => new BuildRefused("dockerfile_invalid", { summary });

// The frontend reads build arguments of these names itself: BUILDKIT_SYNTAX names another frontend.
const settingsPrefix = "BUILDKIT_";

const linesOf = (source: string): string[] => source.replace(/^\uFEFF+/, "").split(/\r?\n/);

/** Build argument of every stage; it keeps commands of two projects from sharing cache entries. */
export const scopeArgument = "BERTH_CACHE_SCOPE";

// With `s`, because BuildKit's pattern also matches U+2028 in a value, and then reads on.
const directive = /^#\s*([a-zA-Z][a-zA-Z0-9]*)\s*=(.+)$/s;

interface Directives {
  readonly notes: readonly string[];
  readonly escape: string;
}

/** Reads the directives at the head as BuildKit does, and removes those that name a frontend. */
function takeDirectives(lines: string[]): Directives {
  // BuildKit skips a first line `#!`, and takes `// syntax=` for a directive, too.
  if (lines[0]?.startsWith("#!")) lines[0] = "#";
  if (lines[0]?.startsWith("//")) throw invalid("Line 1 of the Dockerfile is no instruction.");
  const notes: string[] = [];
  let escape = "\\";
  for (const [index, line] of lines.entries()) {
    const [, name = "", text = ""] = directive.exec(line) ?? [];
    if (name === "") break;
    const value = text.trim();
    if (name.toLowerCase() === "escape" && value === "`") escape = value;
    if (name.toLowerCase() !== "syntax") continue;
    if (!/^(?:docker\.io\/)?docker\/dockerfile(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?$/.test(value)) {
      throw new BuildRefused("dockerfile_syntax_refused", {
        summary: `Line ${index + 1} of the Dockerfile asks for ${value.slice(0, 200)} to read the rest of it. Berth builds with the engine's own frontend only.`,
      });
    }
    // Remains a directive: after a plain comment BuildKit would read no others, such as `escape`.
    lines[index] = "# berth=1";
    notes.push(`${line.trim()}: the engine's own frontend reads the Dockerfile`);
  }
  return { notes, escape };
}

interface Instruction {
  readonly name: string;
  readonly rest: string;
  /** Index of the instruction's last line. */
  readonly end: number;
}

function readInstructions(lines: readonly string[], escape: string): Instruction[] {
  const heredocEnds = Map.groupBy([...lines.keys()].toReversed(), (index) => lines[index]?.trim() ?? "");
  const found: Instruction[] = [];
  for (let index = 0; index < lines.length; index += 1) {
    const line = (lines[index] as string).trim();
    if (line === "" || line.startsWith("#")) continue;
    const parts = [line];
    // Skips comments and empty lines inside a continued instruction.
    while (isContinued(parts.at(-1) as string, escape) && index + 1 < lines.length) {
      index += 1;
      const next = (lines[index] as string).trim();
      if (next === "" || next.startsWith("#")) continue;
      parts.push(next);
    }
    const text = parts.map((part) => (isContinued(part, escape) ? part.slice(0, -1) : part)).join(" ");
    index = afterHeredocs(heredocEnds, index, text);
    const [, name = "", rest = ""] = /^(\w+)\s*(.*)$/s.exec(text) ?? [];
    found.push({ name: name.toUpperCase(), rest, end: index });
  }
  return found;
}

const isContinued = (line: string, escape: string): boolean => line.endsWith(escape);

/** Takes the last line of each heredoc from `ends`, which holds the lines of each text from the bottom up. */
function afterHeredocs(ends: ReadonlyMap<string, number[]>, index: number, text: string): number {
  if (!/^(?:RUN|COPY|ADD)\s/i.test(text)) return index;
  let last = index;
  for (const [, word = ""] of text.matchAll(/<<-?["']?([A-Za-z_]\w*)["']?/g)) {
    const places = ends.get(word) ?? [];
    while ((places.at(-1) ?? last + 1) <= last) places.pop();
    last = places.at(-1) ?? last;
  }
  return last;
}

/** Returns the images that a Dockerfile may name: all of them if a variable is part of a name. */
export function mayStartFrom(dockerfile: string, images: readonly string[]): readonly string[] {
  const lines = linesOf(dockerfile);
  const { escape } = takeDirectives(lines);
  if (readInstructions(lines, escape).some(namesByVariable)) return images;
  return images.filter((image) => dockerfile.includes(image.replace(/:latest$/, "")));
}

function namesByVariable({ name, rest }: Instruction): boolean {
  if (name === "FROM") return rest.includes("$");
  return rest.split(/\s+/).some((word) => {
    const from = word.indexOf("from=");
    return from >= 0 && word.includes("$", from);
  });
}
