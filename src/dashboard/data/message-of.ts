import { fieldsOf, type LogField } from "../../contract/log-fields.ts";

export interface Message {
  readonly text: string;
  /** The other fields that tell something, as `name=value` pairs. */
  readonly rest: string;
}

const messages = ["msg", "message"];
// The line shows them in another way, or they are the same in every line of a logger.
const shown = new Set([
  ...messages,
  ...["level", "severity", "lvl", "time", "timestamp", "ts", "@timestamp", "pid", "hostname", "v"],
]);
const restLength = 300;

/** Returns what a line that is a JSON object says to a reader, undefined for any other line and an object without a message. */
export function messageOf(text: string): Message | undefined {
  const fields = fieldsOf(text);
  const message = fields?.find(({ name, value }) => messages.includes(name) && value !== "");
  if (fields === undefined || message === undefined) return undefined;
  return { text: message.value, rest: pairsOf(fields.filter(({ name }) => !shown.has(name))) };
}

function pairsOf(fields: readonly LogField[]): string {
  const pairs = fields.filter(({ value }) => value !== "null" && value !== "");
  const text = pairs.map(({ name, value }) => `${name}=${value.replaceAll(/\s+/g, " ")}`).join(" ");
  return text.length > restLength ? `${text.slice(0, restLength)}…` : text;
}
