/** One parsed line of a .env file. `problem` says why the line is invalid. */
export interface EnvLine {
  readonly key: string;
  readonly value: string;
  readonly problem?: string;
}

/** Parses a .env file: `KEY=value`, `export KEY=value`, quotes, comments, and quoted values over several lines. */
export function parseEnvFile(text: string): EnvLine[] {
  const lines: EnvLine[] = [];
  const pattern =
    /^[ \t]*(?:export[ \t]+)?([^\s=#][^=\n]*?)[ \t]*=[ \t]*("(?:\\[\s\S]|[^"\\])*"|'[^']*'|`[^`]*`|[^\n]*?)[ \t]*(?:#[^\n]*)?$/gm;
  for (const [, key = "", raw = ""] of text.replaceAll("\r\n", "\n").matchAll(pattern)) lines.push(lineOf(key, raw));
  return lines;
}

function lineOf(key: string, raw: string): EnvLine {
  const value = valueOf(raw);
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(key)) return { key, value, problem: "is no name of a variable" };
  return { key, value };
}

const escapes: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" };

function valueOf(raw: string): string {
  const quote = raw[0];
  if (quote === '"' && raw.endsWith('"'))
    return raw.slice(1, -1).replaceAll(/\\([\s\S])/g, (_, c: string) => escapes[c] ?? c);
  if ((quote === "'" || quote === "`") && raw.length > 1 && raw.endsWith(quote)) return raw.slice(1, -1);
  return raw.replace(/[ \t]+#.*$/, "");
}
