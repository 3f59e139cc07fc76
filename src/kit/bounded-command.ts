import { existsSync } from "node:fs";
import type { Command } from "./exec.ts";

/** Resource limits that the kernel enforces on a program. */
export interface Bounds {
  readonly addressSpaceBytes: number;
  readonly cpuSeconds: number;
  /** Limit for all processes of the program's user together. */
  readonly processes: number;
}

/** Wraps a command in util-linux's prlimit to apply these limits; returns it unchanged on a machine without prlimit. */
export function boundedCommand(prlimitBin: string | null, bounds: Bounds, command: Command): Command {
  if (prlimitBin === null) return command;
  // A colon after the number sets only the soft limit, which the program may raise again.
  const limits = [`--as=${bounds.addressSpaceBytes}:`, `--cpu=${bounds.cpuSeconds}:`, `--nproc=${bounds.processes}:`];
  return { file: prlimitBin, args: [...limits, command.file, ...command.args] };
}

export function findPrlimit(): string | null {
  return ["/usr/bin/prlimit", "/bin/prlimit"].find((file) => existsSync(file)) ?? null;
}
