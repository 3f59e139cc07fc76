/** Where a control plane of `backup-control-plane.ts` can be killed that processes backups and branches. */
export const steps = [
  "writing",
  "stored",
  "dumping",
  "creating",
  "restoring",
  "restored",
  "counting",
  "dropping",
  "recovering",
  "recovered",
  "announcing",
  "copying",
  "branched",
  "started",
] as const;
/** Of the task that stores archives. */
export const archiveSteps = [
  ...(["reading log", "writing log", "stored log", "releasing", "released"] as const),
  ...(["copying folder", "stored copy", "noted copy"] as const),
] as const;
export type Step = (typeof steps)[number] | (typeof archiveSteps)[number];
