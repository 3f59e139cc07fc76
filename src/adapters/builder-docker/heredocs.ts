import { BuildRefused } from "../../detection/failures.ts";

export interface Heredoc {
  /** As the instruction writes it: `<<-"EOF"`. */
  readonly mark: string;
  readonly name: string;
  /** Whether leading tabs are not part of it (`<<-`). */
  readonly isIndented: boolean;
  /** Whether COPY and ADD replace variables in it; not if its name is quoted. */
  readonly expands: boolean;
}

/** Returns the heredocs that an instruction begins, by BuildKit's rule: words of their own, outside of quotes. */
export function heredocsOf(name: string, rest: string): Heredoc[] {
  if (!["RUN", "COPY", "ADD"].includes(name) || !rest.includes("<<")) return [];
  return wordsOf(rest).flatMap((mark) => {
    const [, dash, quote, found] = /^\d*<<(-?)(["']?)([A-Za-z_]\w*)\2$/.exec(mark) ?? [];
    return found === undefined ? [] : [{ mark, name: found, isIndented: dash === "-", expands: quote === "" }];
  });
}

const wordsOf = (text: string): string[] => text.match(/(?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s"'\\])+/gs) ?? [];

export interface HeredocInstruction {
  readonly name: string;
  readonly rest: string;
  readonly heredocs: readonly (Heredoc & { readonly lines: readonly string[] })[];
  /** Line of the source, for messages. */
  readonly line: number;
}

/** A file in the build's context with a heredoc's content, which a rewritten COPY or ADD copies. */
export interface ContextFile {
  readonly path: string;
  readonly content: string;
}

/** An instruction rewritten for frontends that read no heredocs, such as Docker 20.10's. */
export interface WrittenOut {
  readonly text: string;
  readonly files: readonly ContextFile[];
}

/** Rewrites an instruction with heredocs as one without. `shell` is the stage's SHELL. */
export function writeOutHeredocs(instruction: HeredocInstruction, shell: readonly string[]): WrittenOut {
  return instruction.name === "RUN" ? writeOutRun(instruction, shell) : writeOutCopy(instruction);
}

const contentOf = ({ isIndented, lines }: HeredocInstruction["heredocs"][number]): string =>
  lines.map((line) => `${isIndented ? line.replace(/^\t+/, "") : line}\n`).join("");

function writeOutRun({ rest, heredocs }: HeredocInstruction, shell: readonly string[]): WrittenOut {
  const [flags = ""] = /^(?:--\S+\s+)*/.exec(rest) ?? [];
  const command = rest.slice(flags.length).trim();
  const [first, ...others] = heredocs;
  const isWhole = first !== undefined && others.length === 0 && command === first.mark;
  const script = isWhole
    ? scriptOf(contentOf(first))
    : `${command}\n${heredocs.map((each) => `${each.lines.join("\n")}\n${each.name}\n`).join("")}`;
  return { text: `RUN ${flags}${JSON.stringify([...shell, script])}`, files: [] };
}

/** A heredoc that names its interpreter (`#!`) is a program, which BuildKit runs as a file. */
function scriptOf(content: string): string {
  if (!content.startsWith("#!")) return content;
  const file = "/tmp/berth-heredoc";
  const written = `printf %s '${content.replaceAll("'", "'\\''")}' > ${file} && chmod +x ${file}`;
  return `${written} && ${file}; code=$?; rm -f ${file}; exit $code`;
}

/** Folder of the context with the files of all heredocs. */
export const heredocsFolder = ".berth-heredocs";

function writeOutCopy({ name, rest, heredocs, line }: HeredocInstruction): WrittenOut {
  let text = rest;
  const files = heredocs.map((heredoc, index) => {
    const content = contentOf(heredoc);
    if (heredoc.expands && /[$\\]/.test(content)) throw variablesIn(heredoc, line);
    const path = `${heredocsFolder}/${line}-${index}/${heredoc.name}`;
    text = text.replace(heredoc.mark, () => path);
    return { path, content };
  });
  return { text: `${name} ${text}`, files };
}

function variablesIn({ name }: Heredoc, line: number): BuildRefused {
  return new BuildRefused("dockerfile_invalid", {
    summary: `Line ${line} of the Dockerfile: this Docker engine cannot replace variables in \`<<${name}\`.`,
    hint: `Quote the word, as in \`<<'${name}'\`, if the text has no variables. With Docker 23 or later the heredoc works as it is.`,
  });
}
