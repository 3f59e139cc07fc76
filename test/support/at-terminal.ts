import { EventEmitter, once } from "node:events";
import { PassThrough } from "node:stream";
import type { Terminal, TerminalSize } from "../../src/ports/runtime.ts";
import { guardMs } from "./eventually.ts";

/** A person at a terminal. With `isSlow` the terminal accepts the first chunk of output and then blocks. */
export function atTerminal({ isSlow = false } = {}) {
  const input = new PassThrough();
  const output = new EventEmitter();
  let text = "";
  let resize: (size: TerminalSize) => void = () => {};
  const terminal: Terminal = {
    type: "xterm-256color",
    size: { columns: 100, rows: 30 },
    input,
    onResize: (listener) => void (resize = listener),
  };
  return {
    terminal,
    onOutput: (chunk: Buffer) => {
      text += chunk.toString();
      output.emit("more");
      return isSlow ? new Promise<void>(() => {}) : undefined;
    },
    types: (keys: string) => void input.write(keys),
    resizes: (size: TerminalSize) => resize(size),
    seen: () => text,
    async sees(part: string) {
      const signal = AbortSignal.timeout(guardMs);
      while (!text.includes(part)) {
        await once(output, "more", { signal }).catch((cause: unknown) => {
          const shown = JSON.stringify(text.slice(-1000));
          throw new Error(`the terminal did not show ${JSON.stringify(part)}; it shows ${shown}`, { cause });
        });
      }
    },
  };
}
