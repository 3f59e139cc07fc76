import { join } from "node:path";
import { pathsIn } from "../config.ts";

/** Returns the files of the newest upgrade: its steps, the program that continues it, its lock and its output; and the newest versions seen. */
export function upgradeFiles(dataDir: string) {
  const { upgrade } = pathsIn(dataDir);
  return {
    folder: upgrade,
    steps: join(upgrade, "steps"),
    runner: join(upgrade, "runner"),
    lock: join(upgrade, "lock"),
    log: join(upgrade, "log"),
    seen: join(upgrade, "newest-seen"),
  };
}
