export { describedMachine, saveMachine, type MachineDescription } from "./queries.ts";
export {
  backupListKey,
  beginAttempt,
  completeOwnBackup,
  endPlatformBackup,
  forgetPlatformBackup,
  isOfPlatformBackup,
  knownRecipient,
  keptProjects,
  platformBackups,
  platformSince,
  requestPlatformBackup,
  type KeptProject,
  type ListedBackup,
  type PlatformBackup,
} from "./backups.ts";
