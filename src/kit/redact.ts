const mark = "[redacted]";
// Shorter values ("1", "true", "dev") appear in ordinary text; hiding them would garble logs and hide nothing.
const shortestSecret = 6;

/** Hides what must not be seen of a text. */
export type Redact = (text: string) => string;

/** Makes a function that replaces every occurrence of a known secret value in a text, also as JSON, in a URL or as Base64. */
export function redactor(secrets: Iterable<string>): Redact {
  const values = [...new Set(withParts(secrets))].sort((a, b) => b.length - a.length);
  if (values.length === 0) return (text) => text;
  const pattern = new RegExp(values.map((value) => RegExp.escape(value)).join("|"), "g");
  return (text) => text.replace(pattern, mark);
}

// A value of several lines reaches a log line by line, so each of its lines is a secret too.
function* withParts(secrets: Iterable<string>): Generator<string> {
  for (const secret of secrets) {
    if (secret.length < shortestSecret) continue;
    yield* spellings(secret);
    for (const line of secret.split(/\r?\n/)) if (line.length >= shortestSecret) yield* spellings(line);
  }
}

// What is careless with secrets seldom prints them bare: whole environments are logged as JSON, addresses with parameters.
function* spellings(value: string): Generator<string> {
  yield value;
  yield JSON.stringify(value).slice(1, -1);
  yield new URLSearchParams({ value }).toString().slice("value=".length);
  // A lone surrogate has no percent-encoding.
  if (value.isWellFormed()) yield encodeURIComponent(value);
  yield Buffer.from(value).toString("base64");
}
