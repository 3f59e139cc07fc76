import { existsSync } from "node:fs";
import type { Command } from "./exec.ts";

/** What the kernel refuses a program beyond. */
export interface Bounds {
  readonly addressSpaceBytes: number;
  readonly cpuSeconds: number;
  /** Of the user that it runs as, all together. */
  readonly processes: number;
}

/** A command under these limits by util-linux's prlimit; as it is on a machine without it. */
export function boundedCommand(prlimitBin: string | null, bounds: Bounds, command: Command): Command {
  if (prlimitBin === null) return command;
  // A colon behind the number sets the soft limit alone, which a program may lift again for itself.
  const limits = [`--as=${bounds.addressSpaceBytes}:`, `--cpu=${bounds.cpuSeconds}:`, `--nproc=${bounds.processes}:`];
  return { file: prlimitBin, args: [...limits, command.file, ...command.args] };
}

/** Where prlimit is, or null. */
export function findPrlimit(): string | null {
  return ["/usr/bin/prlimit", "/bin/prlimit"].find((file) => existsSync(file)) ?? null;
}
