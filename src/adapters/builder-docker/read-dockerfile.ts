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
 * the engine includes that frontend; all others are refused.
 */
export function readDockerfile(source: string): Dockerfile {
  const lines = source.replace(/^\uFEFF/, "").split(/\r?\n/);
  const notes = takeSyntax(lines);
  const found = readInstructions(lines);
  const ends = found.filter(({ name }) => name === "FROM").map(({ end }) => end);
  const args = found
    .filter(({ name }) => name === "ARG")
    .flatMap(({ rest }) => [...rest.matchAll(/(?:^|\s)([A-Za-z_]\w*)(?==|\s|$)/g)].map(([, name = ""]) => name));
  if (ends.length === 0)
    throw new BuildRefused("dockerfile_invalid", { summary: "The Dockerfile has no `FROM` line." });
  const added = new Set(ends);
  return {
    text: lines.flatMap((line, index) => (added.has(index) ? [line, `ARG ${scopeArgument}`] : [line])).join("\n"),
    args: [...new Set(args)].filter((name) => name !== scopeArgument),
    originalLine: (line) => line - ends.filter((end, count) => end + 1 + count < line).length,
    notes,
  };
}

/** Build argument of every stage; it keeps commands of two projects from sharing cache entries. */
export const scopeArgument = "BERTH_CACHE_SCOPE";

const directive = /^#\s*([a-zA-Z][a-zA-Z0-9]*)\s*=\s*(.+?)\s*$/;

function takeSyntax(lines: string[]): string[] {
  for (const [index, line] of lines.entries()) {
    const [, name = "", value = ""] = directive.exec(line) ?? [];
    if (name === "") return [];
    if (name.toLowerCase() !== "syntax") continue;
    if (!/^(?:docker\.io\/)?docker\/dockerfile(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?$/.test(value)) {
      throw new BuildRefused("dockerfile_syntax_refused", {
        summary: `Line ${index + 1} of the Dockerfile asks for ${value.slice(0, 200)} to read the rest of it. Berth builds with the engine's own frontend only.`,
      });
    }
    lines[index] = "#";
    return [`${line.trim()}: the engine's own frontend reads the Dockerfile`];
  }
  return [];
}

interface Instruction {
  readonly name: string;
  readonly rest: string;
  /** Index of the instruction's last line. */
  readonly end: number;
}

function readInstructions(lines: readonly string[]): Instruction[] {
  const escape = lines.some((line) => /^#\s*escape\s*=\s*`/i.test(line)) ? "`" : "\\";
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
    index = afterHeredocs(lines, index, text);
    const [, name = "", rest = ""] = /^(\w+)\s*(.*)$/s.exec(text) ?? [];
    found.push({ name: name.toUpperCase(), rest, end: index });
  }
  return found;
}

const isContinued = (line: string, escape: string): boolean => line.endsWith(escape);

function afterHeredocs(lines: readonly string[], index: number, text: string): number {
  if (!/^(?:RUN|COPY|ADD)\s/i.test(text)) return index;
  let last = index;
  for (const [, word = ""] of text.matchAll(/<<-?["']?([A-Za-z_]\w*)["']?/g)) {
    const end = lines.findIndex((line, place) => place > last && line.trim() === word);
    if (end >= 0) last = end;
  }
  return last;
}

const namesByVariable = /^\s*FROM\b.*(?:\$|\\\s*$)|\bfrom=\S*\$/im;

/** Returns the images that a Dockerfile may name: all of them if a variable is part of a name. */
export function mayStartFrom(dockerfile: string, images: readonly string[]): readonly string[] {
  if (namesByVariable.test(dockerfile)) return images;
  return images.filter((image) => dockerfile.includes(image.replace(/:latest$/, "")));
}
