import type { Db } from "../../store/database.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { lockProject } from "../projects/projects.ts";
import { insertRun, type NewRun } from "./queries.ts";

export { createTerminals, type Terminals, type TerminalSession } from "./terminals.ts";
export {
  closeUnopened,
  isQueued,
  takeTerminal,
  deleteOldRuns,
  endRun,
  obstacleOf,
  runById,
  runIds,
  takeRun,
  type RunEnd,
  type TakenRun,
} from "./queries.ts";

/** Queues a command that no token requested. */
export async function requestCommand(
  db: Db,
  wakeups: Wakeups,
  command: Omit<NewRun, "terminal" | "token_id">,
): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await lockProject(tx, command);
    await insertRun(tx, { ...command, terminal: false, token_id: null });
    await wakeups.send(tx, "runs", command.project_id);
  });
}
