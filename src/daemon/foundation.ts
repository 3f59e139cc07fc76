import type { Log } from "../kit/log.ts";
import type { Database } from "../store/database.ts";
import type { Wakeups } from "../store/wakeups.ts";
import type { Config } from "./config.ts";
import type { MachineParts } from "./setup/machine.ts";

/** What exists before the platform is wired together. */
export interface Foundation {
  readonly config: Config;
  readonly parts: MachineParts;
  readonly database: Database;
  readonly wakeups: Wakeups;
  readonly log: Log;
}
