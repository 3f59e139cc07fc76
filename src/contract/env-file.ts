/** One variable of a .env file. `problem` says why its line is refused; then `value` is empty. No text here contains a value. */
export interface EnvLine {
  /** Counted from 1. */
  readonly line: number;
  /** Null if the line is no `KEY=VALUE`. */
  readonly key: string | null;
  readonly value: string;
  readonly problem?: string;
}

/**
 * Reads a .env file as far as Docker Compose (compose-go) and dotenv (npm) read it alike: single, double and no quotes, quoted values over
 * several lines, comments, `export`. A line that they read differently has a problem, and so has every line that is none of these.
 */
export function readEnvFile(text: string): readonly EnvLine[] {
  const lines = text.replace(/^\uFEFF/, "").split("\n");
  const found: EnvLine[] = [];
  for (let at = 0; at < lines.length;) {
    const read = readStatement(lines, at);
    const problem = read.problem ?? (hasLineBreak.test(lines[at] as string) ? problems.lineBreak : undefined);
    if (read.key !== undefined || problem !== undefined)
      found.push({
        ...{ line: at + 1, key: read.key ?? null, value: problem === undefined ? (read.value ?? "") : "" },
        ...(problem === undefined ? {} : { problem }),
      });
    at += read.lines;
  }
  return found;
}

/** Returns the problems as sentences that begin with the line's number. */
export function envFileProblems(lines: readonly EnvLine[]): string[] {
  return lines.flatMap(({ line, key, problem }) =>
    problem === undefined ? [] : [`line ${line}${key === null ? "" : ` (${key})`}: ${problem}`],
  );
}

const problems = {
  form: "is not KEY=VALUE with a name of letters, digits and underscores",
  open: "its quote never closes",
  after: "text follows the closing quote",
  escape: "Docker Compose and dotenv read this backslash differently; put the value into single quotes",
  singleEscape: "Docker Compose and dotenv read \\' differently; put the value into double quotes",
  dollar: "Docker Compose replaces a variable after $, dotenv does not; put the value into single quotes",
  hash: "Docker Compose and dotenv read this # differently; put the value into quotes, and a space before a comment",
  backtick: "Docker Compose does not know the quote `; use single or double quotes",
  space: "it begins or ends with an unusual space; put the value into quotes",
  lineBreak: "has a line break that only some programs know; use plain line ends (LF)",
};

// dotenv ends a line at each of these, Docker Compose at none.
const hasLineBreak = /\r(?!$)|[\u2028\u2029]/;

interface Statement {
  readonly lines: number;
  readonly key?: string;
  readonly value?: string;
  readonly problem?: string;
}

// dotenv drops a variable __proto__.
const assignment = /^[ \t]*(?:export[ \t]+(?!=))?(?!__proto__\b)([A-Za-z_][A-Za-z0-9_]{0,127})[ \t]*=[ \t]*(.*)$/s;

function readStatement(lines: readonly string[], at: number): Statement {
  const line = lines[at] as string;
  if (/^[ \t]*(?:#|\r?$)/.test(line)) return { lines: 1 };
  const [, key, raw = ""] = assignment.exec(line) ?? [];
  if (key === undefined || /^[ \t]*export[ \t]+=/.test(line)) return { lines: 1, problem: problems.form };
  const quote = raw[0];
  if (quote === '"' || quote === "'") return { key, ...readQuoted(quote, [raw, ...lines.slice(at + 1)]) };
  return { key, lines: 1, ...readUnquoted(raw.replace(/\r$/, "")) };
}

function readUnquoted(raw: string): Pick<Statement, "value" | "problem"> {
  const hash = raw.indexOf("#");
  if (raw.startsWith("`")) return { problem: problems.backtick };
  if (hash >= 0 && raw[hash - 1] !== " ") return { problem: problems.hash };
  const value = raw.slice(0, hash < 0 ? undefined : hash).replace(/[ \t]+$/, "");
  if (interpolates.test(value)) return { problem: problems.dollar };
  return /^[\s\x85]|[\s\x85]$/.test(value) ? { problem: problems.space } : { value };
}

// Also what Unicode's case folding adds to a-z in Docker Compose's pattern.
const interpolates = /\$[$_a-z{]/iu;

function readQuoted(quote: string, lines: readonly string[]): Statement {
  const text = lines.join("\n");
  const end = closingQuote(text, quote);
  // Nothing behind an open quote can be read reliably.
  if (end < 0) return { lines: lines.length, problem: problems.open };
  const inner = text.slice(1, end);
  const [after = ""] = text.slice(end + 1).split("\n", 1);
  const taken = { lines: inner.split("\n").length };
  if (!/^[ \t]*(?:#|\r?$)/.test(after)) return { ...taken, problem: problems.after };
  const problem = problemInside(quote, inner) ?? (hasLineBreak.test(after) ? problems.lineBreak : undefined);
  if (problem !== undefined) return { ...taken, problem };
  return { ...taken, value: quote === '"' ? inner.replace(/\\([nr])/g, (_, c) => (c === "n" ? "\n" : "\r")) : inner };
}

/** Returns the place of the first quote behind the opening one that no backslash escapes; -1 without one. */
function closingQuote(text: string, quote: string): number {
  for (let at = 1; at < text.length; at += 1) {
    if (text[at] === quote) return at;
    if (text[at] === "\\") at += 1;
  }
  return -1;
}

function problemInside(quote: string, inner: string): string | undefined {
  if (inner.includes("\r")) return problems.lineBreak;
  // dotenv takes a backslash before the closing quote for an escaped quote if another one follows later.
  if (quote === "'") return /\\(?:'|$)/.test(inner) ? problems.singleEscape : undefined;
  if (/\\[abftv0$"\\]/.test(inner)) return problems.escape;
  return interpolates.test(inner) ? problems.dollar : undefined;
}
