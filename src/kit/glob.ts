export type Glob = ReturnType<typeof createGlob>;

/** Counts the steps of matching, so that a caller can give up on a tenant's costly patterns. */
export interface Work {
  steps: number;
}

/**
 * - `plain`: `*` stands for any text within a name; every other character stands for itself.
 * - `braces`: also `**`, `?`, sets such as `[a-z]`, `\` before a character, and alternatives such as `{a,b}`.
 */
export type GlobDialect = "plain" | "braces";

type Accepts = (character: string) => boolean;
type Part =
  | { readonly kind: "one" | "many"; readonly accepts: Accepts }
  | { readonly kind: "folders" }
  | { readonly kind: "either"; readonly choices: readonly (readonly Part[])[] };

/** Parses a pattern; characters without a meaning in the dialect stand for themselves. */
export function createGlob(pattern: string, dialect: GlobDialect) {
  const parts = parse(tokensOf(pattern, dialect));
  return {
    /**
     * Returns whether the whole path matches. Takes at most as many steps as the pattern and the path have characters, multiplied, and adds
     * them to `work`: a backtracking expression can take years for a pattern such as `*a*a*a*b`.
     */
    matches(path: string, work: Work) {
      const characters = [...path];
      return ends(parts, [0], { characters, work }).at(-1) === characters.length;
    },
  };
}

const patterns: Readonly<Record<GlobDialect, RegExp>> = {
  plain: /\*|[^]/gu,
  braces: /\*\*\/?|\*|\?|\[(?:\\.|[^\]\\])+\]|\\.|[{},]|[^]/gu,
};

type Tokens = ReturnType<typeof tokensOf>;

function tokensOf(pattern: string, dialect: GlobDialect) {
  const texts = pattern.match(patterns[dialect]) ?? [];
  const open = new Set<number>();
  const waiting: number[] = [];
  for (const [index, text] of texts.entries()) {
    if (text === "{") waiting.push(index);
    else if (text === "}" && waiting.length > 0) open.add(waiting.pop() as number);
  }
  return {
    texts,
    dialect,
    /** The indexes of `{` that have their `}`. */
    open: dialect === "braces" ? open : new Set(),
    at: 0,
  };
}

/** Parses up to the end or, inside braces, up to their next `,` or `}`. */
function parse(tokens: Tokens, isInBraces = false): Part[] {
  const parts: Part[] = [];
  for (; tokens.at < tokens.texts.length; tokens.at += 1) {
    const text = tokens.texts[tokens.at] as string;
    if (isInBraces && (text === "," || text === "}")) break;
    parts.push(tokens.open.has(tokens.at) ? choicesAt(tokens) : partOf(text, tokens.dialect));
  }
  return parts;
}

/** Parses braces, and moves to their `}`. */
function choicesAt(tokens: Tokens): Part {
  const choices: Part[][] = [];
  do {
    tokens.at += 1;
    choices.push(parse(tokens, true));
  } while (tokens.texts[tokens.at] === ",");
  return { kind: "either", choices };
}

const withinName: Accepts = (character) => character !== "/";

function partOf(text: string, dialect: GlobDialect): Part {
  if (text === "*") return { kind: "many", accepts: withinName };
  if (dialect !== "plain") {
    if (text === "**/") return { kind: "folders" };
    if (text === "**") return { kind: "many", accepts: () => true };
    if (text === "?") return { kind: "one", accepts: withinName };
    if (text.startsWith("[") && text.length > 1) return { kind: "one", accepts: setOf(text) };
  }
  const literal = text.startsWith("\\") && text.length > 1 ? text.slice(1) : text;
  return { kind: "one", accepts: (character) => character === literal };
}

/** Returns whether a character is in a set such as `[a-z]` or, with `^` or `!` first, in none of its ranges. */
function setOf(text: string): Accepts {
  const [, negation = "", inside = ""] = /^\[([!^]?)([^]*)\]$/u.exec(text) ?? [];
  const ranges = [...inside.matchAll(/(\\.|[^])(?:-(\\.|[^]))?/gu)].map(([, from = "", to = from]) =>
    [from, to].map((each) => each.slice(each.startsWith("\\") && each.length > 1 ? 1 : 0)),
  );
  return (character) => {
    const isIn = ranges.some(([from = "", to = ""]) => character >= from && character <= to);
    return character !== "/" && isIn === (negation === "");
  };
}

interface Matching {
  readonly characters: readonly string[];
  readonly work: Work;
}

/** Returns the positions, ascending, at which the parts can end when they start at one of `starts`. */
function ends(parts: readonly Part[], starts: readonly number[], matching: Matching): readonly number[] {
  let places = starts;
  for (const part of parts) {
    if (places.length === 0) break;
    places = after(part, places, matching);
  }
  return places;
}

function after(part: Part, places: readonly number[], matching: Matching): readonly number[] {
  const { characters, work } = matching;
  if (part.kind === "either") {
    const found = new Set<number>();
    for (const choice of part.choices) {
      const reached = ends(choice, places, matching);
      work.steps += reached.length;
      for (const at of reached) found.add(at);
    }
    return [...found].toSorted((a, b) => a - b);
  }
  if (part.kind === "one") {
    work.steps += places.length;
    return places.flatMap((at) => (at < characters.length && part.accepts(characters[at] as string) ? [at + 1] : []));
  }
  const reached: number[] = [];
  const starts = new Set(places);
  let isReached = false;
  for (let at = places[0] as number; at <= characters.length; at += 1) {
    work.steps += 1;
    const before = characters[at - 1] ?? "";
    if (part.kind === "many") isReached = starts.has(at) || (isReached && part.accepts(before));
    // Any number of whole folders, from the first start on.
    else isReached = starts.has(at) || (before === "/" && at > (places[0] as number));
    if (isReached) reached.push(at);
  }
  return reached;
}
