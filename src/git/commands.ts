import { boundedCommand } from "../kit/bounded-command.ts";
import { systemPath, type Command } from "../kit/exec.ts";
import type { GitFiles } from "./git-files.ts";
import type { GitService } from "./paths.ts";

/** Paths of the programs. `prlimitBin` is util-linux's prlimit, or null on a machine without it. */
export interface GitPrograms {
  readonly gitBin: string;
  readonly prlimitBin: string | null;
}

// Resource limits. A pack of 256 MiB needs far less memory and CPU time; a hostile pack (chains of growing deltas) is stopped by the kernel.
const bounds = { addressSpaceBytes: 3 * 1024 ** 3, cpuSeconds: 600, processes: 4096 };

/** Returns the command of git's server program for one repository, which speaks the protocol on stdin and stdout. */
export function serveCommand(programs: GitPrograms, service: GitService, dir: string): Command {
  return bounded(programs, [service.slice("git-".length), dir]);
}

/** Returns the command of git's CGI program for smart HTTP, which reads its parameters from the environment. */
export function httpBackendCommand(programs: GitPrograms): Command {
  return bounded(programs, ["http-backend"]);
}

function bounded({ gitBin, prlimitBin }: GitPrograms, args: readonly string[]): Command {
  return boundedCommand(prlimitBin, bounds, { file: gitBin, args });
}

/** Returns the complete environment of git's server programs: Berth's git configuration, and no token. */
export function serveEnv(files: GitFiles, protocol: string | null): Record<string, string> {
  return {
    PATH: systemPath,
    HOME: "/nonexistent",
    LC_ALL: "C.UTF-8",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: files.configFile,
    GIT_NO_REPLACE_OBJECTS: "1",
    ...(protocol === null ? {} : { GIT_PROTOCOL: protocol }),
  };
}
