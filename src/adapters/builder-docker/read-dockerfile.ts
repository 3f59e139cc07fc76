import { BuildRefused } from "../../detection/failures.ts";
import { heredocsOf, writeOutHeredocs, type ContextFile, type Heredoc, type HeredocInstruction } from "./heredocs.ts";

/** What the builder must know about a project's Dockerfile before the build. */
export type Dockerfile = ReturnType<typeof readDockerfile>;

export interface Frontend {
  /** Heredocs and `COPY --link`, which Docker 23 introduced. */
  readonly readsHeredocs: boolean;
}

/**
 * Reads a Dockerfile. A line `# syntax=` makes BuildKit fetch and run an image as its frontend: Docker's own images are removed, because
 * the engine includes that frontend; all others are refused. Takes time linear in the source's length, as this is a stranger's file.
 */
export function readDockerfile(source: string, frontend: Frontend = { readsHeredocs: true }) {
  if (source.length > maxLength) throw invalid(`The Dockerfile has more than ${maxLength / 1024} KiB.`);
  const lines = linesOf(source);
  const { notes, escape } = takeDirectives(lines);
  const found = readInstructions(lines, escape);
  const args = found
    .filter(({ name }) => name === "ARG")
    .flatMap(({ rest }) => [...rest.matchAll(/(?:^|\s)([A-Za-z_]\w*)(?==|\s|$)/g)].map(([, name = ""]) => name));
  if (!found.some(({ name }) => name === "FROM")) throw invalid("The Dockerfile has no `FROM` line.");
  const { written, files } = writeText(lines, found, frontend);
  const stages = new Set(found.flatMap(({ name, rest }) => (name === "FROM" ? (stageIn(rest).as ?? []) : [])));
  return {
    /** The text to build: the source without lines that name a frontend, and with instructions rewritten that the engine's frontend cannot read. */
    text: written.map(({ text }) => text).join("\n"),
    /** Names declared by `ARG`. */
    args: [...new Set(args)].filter((name) => !name.startsWith(settingsPrefix)),
    /** Names of its stages, in lower case. */
    stages: [...stages],
    /** Words after `FROM` and `from=` that look like the name of a stage, but name none. */
    unknownStages: found.flatMap(sourcesIn).filter((name) => /^[a-z][\w-]*$/.test(name) && !stages.has(name)),
    /** Maps a line of `text` to the line of the source. */
    originalLine: (line: number) => written[line - 1]?.line ?? line,
    notes,
    /** Files that the text needs in the build's context besides the source's. */
    files,
  };
}

/** Reads what follows FROM: `--platform=… image AS name`. */
function stageIn(rest: string): { readonly from: string; readonly as: string | undefined } {
  const [from = "", , as] = rest
    .replace(/^(?:--\S+\s+)*/, "")
    .toLowerCase()
    .split(/\s+/);
  return { from, as };
}

/** Returns the images and stages that an instruction names, in lower case. */
function sourcesIn({ name, rest }: Instruction): string[] {
  if (name === "FROM") return [stageIn(rest).from];
  const [flags = ""] = /^(?:--\S+\s+)*/.exec(rest) ?? [];
  return flags.split(/[\s,]+/).flatMap((word) => /^(?:--)?from=(.+)$/.exec(word.toLowerCase())?.[1] ?? []);
}

interface WrittenLine {
  readonly text: string;
  readonly line: number;
}

function writeText(lines: readonly string[], found: readonly Instruction[], { readsHeredocs }: Frontend) {
  const written: WrittenLine[] = [];
  const files: ContextFile[] = [];
  const shells = createShells();
  const copy = (start: number, end: number) => {
    for (let index = start; index < end; index += 1) written.push({ text: lines[index] ?? "", line: index + 1 });
  };
  let next = 0;
  for (const instruction of found) {
    const { start, end } = instruction;
    copy(next, start);
    next = end + 1;
    shells.read(instruction);
    const other = readsHeredocs ? undefined : writtenOut(lines, instruction, shells.current());
    if (other === undefined) copy(start, next);
    else written.push({ text: other.text, line: start + 1 });
    files.push(...(other?.files ?? []));
  }
  copy(next, lines.length);
  return { written, files };
}

function writtenOut(lines: readonly string[], instruction: Instruction, shell: readonly string[]) {
  const { name, rest, start } = instruction;
  const isCopy = name === "COPY" || name === "ADD";
  // `--link` only makes rebuilding a layer faster, so the instruction works without it.
  const linked = isCopy ? rest.replace(/^((?:--\S+\s+)*?)--link(?:=\w+)?\s+/, "$1") : rest;
  if (instruction.heredocs.length === 0) return linked === rest ? undefined : { text: `${name} ${linked}`, files: [] };
  const heredocs = instruction.heredocs.map((each) => ({ ...each, lines: lines.slice(each.start, each.end) }));
  return writeOutHeredocs({ name, rest: linked, heredocs, line: start + 1 } satisfies HeredocInstruction, shell);
}

const usualShell = ["/bin/sh", "-c"];

/** Follows which shell runs a stage's commands: its own SHELL, else that of the stage that it starts from. */
function createShells() {
  const byStage = new Map<string, readonly string[]>();
  let stage = "";
  let current: readonly string[] = usualShell;
  return {
    current: () => current,
    read({ name, rest }: Instruction) {
      if (name === "FROM") {
        const { from, as = "" } = stageIn(rest);
        current = byStage.get(from) ?? usualShell;
        stage = as;
      }
      if (name === "SHELL") current = shellIn(rest) ?? current;
      if (stage !== "") byStage.set(stage, current);
    },
  };
}

/** BuildKit itself refuses a SHELL that is no list. */
function shellIn(rest: string): string[] | undefined {
  try {
    const words: unknown = JSON.parse(rest);
    return Array.isArray(words) ? words.map(String) : undefined;
  } catch {
    return undefined;
  }
}

const maxLength = 256 * 1024;
const invalid = (summary: string) => new BuildRefused("dockerfile_invalid", { summary });

// The frontend reads build arguments of these names itself: BUILDKIT_SYNTAX names another frontend.
const settingsPrefix = "BUILDKIT_";

const linesOf = (source: string): string[] => source.replace(/^\uFEFF+/, "").split(/\r?\n/);

// With the flag `s`, because BuildKit's pattern also matches U+2028 in a value, and then reads on.
const directive = /^#\s*([a-zA-Z][a-zA-Z0-9]*)\s*=(.+)$/s;

/** Reads the directives at the head as BuildKit does, and removes those that name a frontend. */
function takeDirectives(lines: string[]) {
  // BuildKit skips a first line `#!`, and accepts `// syntax=` as a directive, too.
  if (lines[0]?.startsWith("#!")) lines[0] = "#";
  if (lines[0]?.startsWith("//")) throw invalid("Line 1 of the Dockerfile is not an instruction.");
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
        summary: `Line ${index + 1} of the Dockerfile names the frontend ${value.slice(0, 200)}. Berth builds only with the engine's own frontend.`,
      });
    }
    // Replace it with another directive: after a plain comment, BuildKit would read no further ones, such as `escape`.
    lines[index] = "# berth=1";
    notes.push(`${line.trim()}: the engine's own frontend reads the Dockerfile`);
  }
  return { notes, escape };
}

interface Instruction {
  readonly name: string;
  readonly rest: string;
  /** Index of the instruction's first line. */
  readonly start: number;
  /** Index of the instruction's last line. */
  readonly end: number;
  readonly heredocs: readonly PlacedHeredoc[];
}

/** A heredoc whose lines begin at index `start` and end before index `end`, where its name stands. */
interface PlacedHeredoc extends Heredoc {
  readonly start: number;
  readonly end: number;
}

function readInstructions(lines: readonly string[], escape: string): Instruction[] {
  const findEnd = createEndFinder(lines);
  const found: Instruction[] = [];
  for (let index = 0; index < lines.length; index += 1) {
    const start = index;
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
    const [, word = "", rest = ""] = /^(\w+)\s*(.*)$/s.exec(text) ?? [];
    const name = word.toUpperCase();
    const heredocs: PlacedHeredoc[] = [];
    for (const heredoc of heredocsOf(name, rest)) {
      const end = findEnd(heredoc, index);
      if (end === undefined) continue;
      heredocs.push({ ...heredoc, start: index + 1, end });
      index = end;
    }
    found.push({ name, rest, start, end: index, heredocs });
  }
  return found;
}

const isContinued = (line: string, escape: string): boolean => line.endsWith(escape);

/** Finds the line after `index` that ends a heredoc. To take linear time it forgets the lines before. */
function createEndFinder(lines: readonly string[]) {
  const group = (textOf: (line: string) => string) =>
    Map.groupBy([...lines.keys()].toReversed(), (index) => textOf(lines[index] ?? ""));
  let plain: Map<string, number[]> | undefined;
  let indented: Map<string, number[]> | undefined;
  return ({ name, isIndented }: Heredoc, index: number): number | undefined => {
    const ends = isIndented
      ? (indented ??= group((line) => line.replace(/^\t+/, "")))
      : (plain ??= group((line) => line));
    const places = ends.get(name) ?? [];
    while ((places.at(-1) ?? index + 1) <= index) places.pop();
    return places.at(-1);
  };
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
