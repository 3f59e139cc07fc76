import { Writable } from "node:stream";
import { pino } from "pino";
import type { Log } from "../kit/log.ts";

/** Creates the control plane's log on standard output: JSON for machines, or one readable line for each entry. */
export function createLog(options: { format: "text" | "json"; level: string }): Log {
  const destination = options.format === "json" ? process.stdout : asText(process.stdout);
  return pino(
    { level: options.level, base: null, redact: ["*.authorization", "*.password", "*.token", "*.cookie"] },
    destination,
  ) as unknown as Log;
}

const names: Record<number, string> = { 20: "debug", 30: "info ", 40: "warn ", 50: "error" };
const own = new Set(["level", "time", "msg", "err"]);

function asText(out: NodeJS.WritableStream): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      for (const line of chunk.toString().split("\n"))
        if (line !== "") out.write(`${readable(JSON.parse(line) as Entry)}\n`);
      done();
    },
  });
}

interface Entry {
  readonly level: number;
  readonly time: number;
  readonly msg: string;
  /** A serialised error, or any other value that was thrown. */
  readonly err?: unknown;
}

/** Returns one entry as readable text. Control characters are replaced, so that a tenant's output in a message can't steer the terminal. */
export function readable(entry: Entry): string {
  const time = new Date(entry.time).toISOString().slice(11, 19);
  const rest = Object.entries(entry).filter(([key]) => !own.has(key));
  const fields = rest
    .map(([key, value]) => ` ${key}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join("");
  const lines = entry.err === undefined ? [] : stackOf(entry.err).split("\n");
  const trouble = lines.map((line) => `\n         ${plain(line)}`).join("");
  return `${time} ${names[entry.level] ?? "     "} ${plain(`${entry.msg}${fields}`)}${trouble}`;
}

function stackOf(fault: unknown): string {
  const { stack, message } = (typeof fault === "object" && fault !== null ? fault : {}) as Record<string, unknown>;
  return [stack, message, fault].find((text) => typeof text === "string") ?? JSON.stringify(fault);
}

function plain(text: string): string {
  return text.replace(/\p{Cc}/gu, "\u{fffd}");
}
