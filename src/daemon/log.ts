import { Writable } from "node:stream";
import { pino } from "pino";
import type { Log } from "../kit/log.ts";

/** The control plane's log on standard output: JSON for machines, or one readable line each. */
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
  readonly err?: { readonly message: string; readonly stack?: string };
}

function readable(entry: Entry): string {
  const time = new Date(entry.time).toISOString().slice(11, 19);
  const rest = Object.entries(entry).filter(([key]) => !own.has(key));
  const fields = rest
    .map(([key, value]) => ` ${key}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join("");
  const trouble =
    entry.err === undefined
      ? ""
      : `\n         ${(entry.err.stack ?? entry.err.message).replaceAll("\n", "\n         ")}`;
  return `${time} ${names[entry.level] ?? "     "} ${entry.msg}${fields}${trouble}`;
}
