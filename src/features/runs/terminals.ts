import type { RunEnd } from "./queries.ts";
import type { Terminal, TerminalSize } from "../../ports/runtime.ts";
import { Refused } from "../refused.ts";
import type { Tunnel } from "../tunnel.ts";

export interface TerminalSession {
  readonly terminal: Terminal;
  /** Aborts when the connection ends. */
  readonly signal: AbortSignal;
  /** Writes output to the person's terminal; resolves when the connection can accept more. */
  write(chunk: Buffer): Promise<void>;
  end(status: RunEnd, exitCode: number | null): void;
}

/** The open terminals of this control plane. Requests add them; the worker for runs takes them. */
export type Terminals = ReturnType<typeof createTerminals>;

/** Creates the list of open terminals, which the API and the reconcilers of a process share. */
export function createTerminals() {
  const sessions = new Map<string, TerminalSession>();
  return {
    /** Offers a terminal to the worker; resolves when the command has ended. */
    async serve(runId: string, tunnel: Tunnel, ready: () => Promise<void>) {
      if (sessions.has(runId)) throw new Refused("conflict", { error: "The terminal was already opened." });
      const over = Promise.withResolvers<void>();
      const forget = () => void sessions.delete(runId);
      tunnel.signal.addEventListener("abort", () => (forget(), over.resolve()), { once: true });
      const terminal = await firstSize(tunnel);
      if (tunnel.signal.aborted) return;
      sessions.set(runId, {
        terminal,
        signal: tunnel.signal,
        write: (chunk) => writeTo(tunnel, chunk),
        end(status, exitCode) {
          forget();
          tunnel.tell({ type: "exit", status, exit_code: exitCode });
          over.resolve();
        },
      });
      await ready();
      await over.promise;
    },
    waiting: () => [...sessions.keys()],
    take(runId: string) {
      const session = sessions.get(runId);
      sessions.delete(runId);
      return session;
    },
  };
}

/** Resolves with a tunnel's terminal once its client has sent the terminal's size. */
function firstSize({ bytes, onTold, signal }: Tunnel): Promise<Terminal> {
  const listeners: ((size: TerminalSize) => void)[] = [];
  return new Promise((resolve) => {
    const giveUp = () => resolve({ type: "dumb", size: usualSize, input: bytes, onResize: () => {} });
    signal.addEventListener("abort", giveUp, { once: true });
    onTold((message) => {
      if (message["type"] !== "size") return;
      const size = { columns: cells(message["columns"], 80), rows: cells(message["rows"], 24) };
      for (const listener of listeners) listener(size);
      const type = /^[\w.+-]{1,40}$/.exec(String(message["term"]))?.[0] ?? "xterm";
      resolve({ type, size, input: bytes, onResize: (listener) => void listeners.push(listener) });
    });
  });
}

const usualSize = { columns: 80, rows: 24 };

function cells(value: unknown, usual: number): number {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= 1000 ? value : usual;
}

function writeTo({ bytes, signal }: Tunnel, chunk: Buffer): Promise<void> {
  if (signal.aborted || bytes.write(chunk)) return Promise.resolve();
  return new Promise((resolve) => {
    bytes.once("drain", resolve);
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
