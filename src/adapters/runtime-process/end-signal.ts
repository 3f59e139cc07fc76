import { mkdirSync, rmSync, watch } from "node:fs";
import { join } from "node:path";
import { namesIn } from "./state-files.ts";

export interface EndSignal {
  close(): void;
}

/**
 * Calls `onEnd` with the pid of each shim that exits. Shims write a file named after their pid to one folder (shim.sh), so that one inotify
 * watch serves all instances; where watching is impossible, polling notices exits.
 */
export function watchEnds(stateDir: string, onEnd: (pid: number) => void): EndSignal {
  const folder = join(stateDir, "ended");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const answer = () => {
    for (const name of namesIn(folder)) {
      rmSync(join(folder, name), { force: true });
      onEnd(Number(name));
    }
  };
  try {
    const watcher = watch(folder, { persistent: false }, answer).on("error", () => {});
    answer();
    return watcher;
  } catch {
    return { close() {} };
  }
}
