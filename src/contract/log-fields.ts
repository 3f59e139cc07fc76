export interface LogField {
  /** Its keys from the outside in, with dots between them: `req.method`. */
  readonly name: string;
  /** A string as it is, anything else as JSON. */
  readonly value: string;
}

const mostFields = 200;

/** Returns the fields of a line that is a JSON object, those of objects within it too; undefined for any other line. */
export function fieldsOf(text: string): readonly LogField[] | undefined {
  const line = text.trim();
  if (!line.startsWith("{") || !line.endsWith("}")) return undefined;
  try {
    const fields: LogField[] = [];
    collect(JSON.parse(line) as object, "", fields);
    return fields;
  } catch {
    return undefined;
  }
}

function collect(object: object, prefix: string, into: LogField[]): void {
  for (const [key, value] of Object.entries(object)) {
    if (into.length === mostFields) return;
    const name = `${prefix}${key}`;
    if (isFilledObject(value)) collect(value, `${name}.`, into);
    else into.push({ name, value: typeof value === "string" ? value : JSON.stringify(value) });
  }
}

const isFilledObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;

/** Returns whether a line is a JSON object with all of these fields, each written as `name=value`. */
export function hasFields(text: string, wanted: readonly string[]): boolean {
  const found = fieldsOf(text)?.map(({ name, value }) => `${name}=${value}`);
  return found !== undefined && wanted.every((field) => found.includes(field));
}
