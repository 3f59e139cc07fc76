import { randomBytes } from "node:crypto";
import { forwardedSockets } from "../../kit/server-address.ts";
import type { OneOffCommand, OneOffResult, Workload } from "../../ports/runtime.ts";
import { inTerminal } from "./in-terminal.ts";
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
