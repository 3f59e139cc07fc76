export { deleteOldRuns, endRun, mayGoOn, runIds, takeRun, type RunEnd, type TakenRun } from "./queries.ts";
