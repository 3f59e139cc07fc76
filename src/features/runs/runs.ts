export { createTerminals, type Terminals, type TerminalSession } from "./terminals.ts";
export {
  closeUnopened,
  isQueued,
  takeTerminal,
  deleteOldRuns,
  endRun,
  mayGoOn,
  runIds,
  takeRun,
  type RunEnd,
  type TakenRun,
} from "./queries.ts";
