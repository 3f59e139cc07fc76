export { importCrons, planCrons } from "./import-crons.ts";
export { claimDue, correctNextMinutes } from "./claim.ts";
export {
  activeDeployments,
  adoptRuns,
  closeLostRuns,
  finishRuns,
  isCalled,
  nextMinute,
  pruneRuns,
  releaseRuns,
  renewRuns,
  startRuns,
  type RunEnd,
  type StartedRun,
  type WaitingRun,
} from "./lifecycle-queries.ts";
