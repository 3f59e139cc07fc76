/** Serializes a document to at most `atMost` characters: the longest lists lose entries, which a note counts; then the text is cut. */
export function fit(document: unknown, atMost = answerCharacters): Fitted {
  const lost = new Map<string, number>();
  let kept: number | undefined;
  let shown = document;
  let text = asText(shown);
  while (text.length > atMost) {
    const longest = longestList(shown);
    if (longest === undefined)
      return { document: null, text: `${text.slice(0, atMost)}…`, notes: [...noteAll(lost), "The rest was cut."] };
    const { path, list } = longest;
    const keep = Math.max(1, Math.min(list.length - 1, Math.floor((list.length * atMost) / text.length)));
    if (path.length === 1) kept = keep;
    lost.set(path.join("."), (lost.get(path.join(".")) ?? 0) + list.length - keep);
    shown = replaceAt(shown, path, list.slice(0, keep));
    text = asText(shown);
  }
  return { document: shown, text, notes: noteAll(lost), ...(kept === undefined ? {} : { kept }) };
}

export interface Fitted {
  /** The part of the document that was kept; null if its text had to be cut. */
  readonly document: unknown;
  readonly text: string;
  readonly notes: readonly string[];
  /** How many entries the document's own list kept, if it lost some. */
  readonly kept?: number;
}

/** Maximum characters of an answer: about 10,000 tokens. */
export const answerCharacters = 40_000;

/** Returns the last lines of a text, at most `atMost` characters, and whether anything before them is missing. */
export function lastLines(text: string, atMost = answerCharacters): { text: string; isCut: boolean } {
  if (text.length <= atMost) return { text, isCut: false };
  const end = text.slice(-atMost);
  const start = end.indexOf("\n");
  return { text: (start === -1 ? end : end.slice(start + 1)).toWellFormed(), isCut: true };
}

function asText(document: unknown): string {
  return JSON.stringify(document);
}

function noteAll(lost: ReadonlyMap<string, number>): readonly string[] {
  return [...lost].map(
    ([path, count]) => `${count} entries of "${path}" were left out: ask for fewer, or for the next page.`,
  );
}

interface FoundList {
  readonly path: readonly string[];
  readonly list: readonly unknown[];
}

function longestList(document: unknown, path: readonly string[] = []): FoundList | undefined {
  if (typeof document !== "object" || document === null) return undefined;
  const inside = Object.entries(document).map(([name, value]) => longestList(value, [...path, name]));
  const own = Array.isArray(document) && document.length > 1 ? { path, list: document as unknown[] } : undefined;
  return [own, ...inside]
    .filter((found) => found !== undefined)
    .toSorted((one, other) => asText(other.list).length - asText(one.list).length)[0];
}

function replaceAt(document: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value;
  if (Array.isArray(document))
    return document.map((each: unknown, index) => (String(index) === name ? replaceAt(each, rest, value) : each));
  const fields = document as Readonly<Record<string, unknown>>;
  return { ...fields, [name]: replaceAt(fields[name], rest, value) };
}
