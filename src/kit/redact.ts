const mark = "[redacted]";
// Shorter values ("1", "true", "dev") appear in ordinary text; hiding them would garble logs and hide nothing.
const shortestSecret = 6;

/** Makes a function that replaces every occurrence of a known secret value in a text. */
export function redactor(secrets: Iterable<string>): (text: string) => string {
  const values = [...new Set(withParts(secrets))].sort((a, b) => b.length - a.length);
  if (values.length === 0) return (text) => text;
  const pattern = new RegExp(values.map((value) => RegExp.escape(value)).join("|"), "g");
  return (text) => text.replace(pattern, mark);
}

// A value of several lines reaches a log line by line, so each of its lines is a secret too.
function* withParts(secrets: Iterable<string>): Generator<string> {
  for (const secret of secrets) {
    if (secret.length < shortestSecret) continue;
    yield secret;
    for (const line of secret.split(/\r?\n/)) if (line.length >= shortestSecret) yield line;
  }
}
