import { relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";

const linesShown = 24;
const charactersShown = 1000;
/** The platform's tokens, credentials in headers, passwords in addresses. */
const secrets: readonly (readonly [RegExp, string])[] = [
  [/\b(berth_[a-z]_)\w+/g, "$1[redacted]"],
  [/\b(Bearer|Basic) [\w.+/=-]+/gi, "$1 [redacted]"],
  [/(:\/\/[^\s:/@]*:)[^\s/@]+@/g, "$1[redacted]@"],
];

/** Returns a few lines for the end of a run: why a test failed, and the first line of this checkout in the stack. */
export function explainError(error: Error): string {
  // Node wraps the error that a test throws.
  const thrown = error.cause ?? error;
  if (!(thrown instanceof Error)) return shorten(inspect(thrown));
  const cause = thrown.cause instanceof Error ? `\ncaused by ${thrown.cause.message}` : "";
  const place = placeInCheckout(thrown.stack ?? "");
  return `${shorten(`${thrown.message}${cause}`)}${place === null ? "" : `\nat ${place}`}`;
}

/** The same for a process that failed as a whole: the end of its output, without the lines that report success. */
export function explainOutput(output: string): string {
  const lines = output
    .trimEnd()
    .split("\n")
    .filter((line) => !/^(?:✔|ok|ℹ (?:tests|suites|pass|cancelled|skipped|todo|duration_ms)) /.test(line));
  return shorten(lines.slice(-linesShown).join("\n"));
}

function shorten(text: string): string {
  const safe = secrets.reduce((before, [pattern, mark]) => before.replaceAll(pattern, mark), text);
  const lines = safe.trim().split("\n");
  const shown = lines.length > linesShown ? [...lines.slice(0, linesShown - 1), "…"] : lines;
  const cut = shown.map((line) => (line.length > charactersShown ? `${line.slice(0, charactersShown)}…` : line));
  return cut.join("\n");
}

function placeInCheckout(stack: string): string | null {
  const places = [...stack.matchAll(/(file:\/\/\S+?|\/\S+?):(\d+):\d+\)?$/gm)].map(([, path = "", line]) => {
    const file = path.startsWith("file:") ? fileURLToPath(path) : path;
    return { file: relative(process.cwd(), file), line };
  });
  const ours = places.find(({ file }) => !file.startsWith("..") && !file.split(sep).includes("node_modules"));
  return ours === undefined ? null : `${ours.file}:${ours.line}`;
}
