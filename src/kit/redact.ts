const mark = "[redacted]";
// Shorter values ("1", "true", "dev") occur in ordinary text; redacting them would garble logs and protect nothing.
const shortestSecret = 6;

/** Removes secrets from a text. */
export type Redact = (text: string) => string;

/** Creates a function that replaces every occurrence of a known secret value in a text, including its JSON, URL and Base64 encodings. */
export function redactor(secrets: Iterable<string>): Redact {
  const values = [...new Set(withParts(secrets))].sort((a, b) => b.length - a.length);
  if (values.length === 0) return (text) => text;
  const pattern = new RegExp(values.map((value) => RegExp.escape(value)).join("|"), "g");
  return (text) => text.replace(pattern, mark);
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
