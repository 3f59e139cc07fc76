import { boundedCommand } from "../kit/bounded-command.ts";
import { systemPath, type Command } from "../kit/exec.ts";
import type { GitFiles } from "./git-files.ts";
import type { GitService } from "./paths.ts";

/** Where the programs are. `prlimitBin` is util-linux's, or null on a machine without it. */
export interface GitPrograms {
  readonly gitBin: string;
  readonly prlimitBin: string | null;
}

// A pack of 256 MiB needs well below both; what a hostile pack (chains of growing deltas) asks for beyond is refused by the kernel.
const bounds = { addressSpaceBytes: 3 * 1024 ** 3, cpuSeconds: 600, processes: 4096 };

/** git's server program for one repository, speaking on stdin and stdout. */
export function serveCommand(programs: GitPrograms, service: GitService, dir: string): Command {
  return bounded(programs, [service.slice("git-".length), dir]);
}

/** git's CGI program for smart HTTP; everything it needs is in its environment. */
export function httpBackendCommand(programs: GitPrograms): Command {
  return bounded(programs, ["http-backend"]);
}

function bounded({ gitBin, prlimitBin }: GitPrograms, args: readonly string[]): Command {
  return boundedCommand(prlimitBin, bounds, { file: gitBin, args });
}

/** The exact environment of git's server programs: no token and nothing of ours but the configuration. */
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
