const mark = "[redacted]";
// Shorter values ("1", "true", "dev") occur in ordinary text; redacting them would garble logs and protect nothing.
const shortestSecret = 6;

export type Redact = (text: string) => string;

/** Creates a function that replaces every occurrence of a known secret value in a text, including its JSON, URL and Base64 encodings. */
export function redactor(secrets: Iterable<string>): Redact {
  const values = [...new Set(withParts(secrets))].sort((a, b) => b.length - a.length);
  if (values.length === 0) return (text) => text;
  const long = values.filter((value) => value.length > mostInPattern.characters);
  const patterns = groupsOf(values.slice(long.length)).map(patternOf);
  return (text) => {
    const rest = long.reduce((left, value) => left.replaceAll(value, mark), text);
    return patterns.reduce((left, pattern) => left.replace(pattern, mark), rest);
  };
}

// V8 refuses an expression with tens of thousands of alternatives, or with one of a hundred thousand characters, in an error that quotes
// it whole. Several smaller ones cost no more a line.
const mostInPattern = { values: 1000, characters: 1000 };

function groupsOf(values: readonly string[]): readonly (readonly string[])[] {
  const count = Math.ceil(values.length / mostInPattern.values);
  return Array.from({ length: count }, (_, at) =>
    values.slice(at * mostInPattern.values, (at + 1) * mostInPattern.values),
  );
}

function patternOf(values: readonly string[]): RegExp {
  return new RegExp(values.map((value) => RegExp.escape(value)).join("|"), "g");
}

// A multi-line value reaches a log line by line, so each of its lines is a secret too.
function* withParts(secrets: Iterable<string>): Generator<string> {
  for (const secret of secrets) {
    if (secret.length < shortestSecret) continue;
    yield* spellings(secret);
    for (const line of secret.split(/\r?\n/)) if (line.length >= shortestSecret) yield* spellings(line);
  }
}

// Programs that leak secrets seldom print them bare: they log whole environments as JSON, or URLs with parameters.
function* spellings(value: string): Generator<string> {
  yield value;
  yield JSON.stringify(value).slice(1, -1);
  yield new URLSearchParams({ value }).toString().slice("value=".length);
  // A lone surrogate has no percent-encoding.
  if (value.isWellFormed()) yield encodeURIComponent(value);
  yield Buffer.from(value).toString("base64");
}
