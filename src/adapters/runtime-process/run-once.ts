import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { forwardedSockets } from "../../kit/server-address.ts";
import type { OneOffCommand, OneOffResult, Terminal, TerminalSize, Workload } from "../../ports/runtime.ts";
import { sandboxSpec, shellWords, type ProcessRuntimeOptions } from "./settings.ts";

/** Runs one command of the workload's image to completion, in a sandbox that ends with this process at the latest. */
export async function runOnce(
  options: ProcessRuntimeOptions,
  workload: Workload,
  task: OneOffCommand,
): Promise<OneOffResult> {
  const { command: _, ...spec } = sandboxSpec(options, workload, `run-${randomBytes(8).toString("hex")}`);
  const listening = workload.port === null ? {} : { PORT: String(workload.port), HOST: "0.0.0.0" };
  const env = { ...spec.env, ...listening };
  const terminal = task.terminal && inTerminal(task.terminal, task.command);
  const silence = new AbortController();
  const quiet = setTimeout(() => silence.abort(), task.silenceMs);
  const onOutput = (chunk: Buffer) => {
    quiet.refresh();
    return task.onOutput(chunk);
  };
  try {
    const result = await options.sandbox.run(
      {
        ...{
          ...spec,
          env: { ...env, ...terminal?.env },
          network: { kind: "egress", reach: forwardedSockets(workload.reach) },
        },
        argv: terminal?.argv ?? shellWords(task.command),
        controlled: terminal !== undefined,
      },
      {
        ...(terminal === undefined ? {} : { stdin: terminal.input, control: terminal.control }),
        timeoutMs: task.timeoutMs,
        signal: AbortSignal.any([task.signal, silence.signal]),
        onStdout: onOutput,
        onStderr: onOutput,
      },
    );
    if (task.signal.aborted) return { outcome: "cancelled" };
    if (result.timedOut) return { outcome: "timed_out" };
    if (silence.signal.aborted) return { outcome: "silent" };
    return {
      outcome: "exited",
      code: result.exitCode ?? 137,
      out_of_memory: result.outOfMemory && result.exitCode !== 0,
    };
  } finally {
    clearTimeout(quiet);
  }
}

const session = readFileSync(join(import.meta.dirname, "terminal.sh"), "utf8");
const script = ["script", "--quiet", "--return", "--flush", "--echo", "always", "--command"];

/** Runs a command in a terminal that script(1) creates inside the sandbox, so that its name, signals and end belong to the sandbox. */
function inTerminal({ type, size, input, onResize }: Terminal, command: string) {
  const control = new PassThrough();
  onResize((next) => void control.write(`${sizeWords(next)}\n`));
  return {
    argv: [...script, `set -- ${sizeWords(size)} ${quoted(command)}\n${session}`, "/dev/null"],
    // script(1) starts the shell named in SHELL.
    env: { TERM: type, SHELL: "/bin/sh" },
    input,
    /** The terminal's size changes, in the format that terminal.sh reads. */
    control,
  };
}

const sizeWords = ({ columns, rows }: TerminalSize): string => `${columns} ${rows}`;
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
