export { describedMachine, saveMachine, type MachineDescription } from "./queries.ts";
export * from "./backups.ts";
