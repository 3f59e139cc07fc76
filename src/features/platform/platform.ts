export { describedMachine, saveMachine, type MachineDescription } from "./queries.ts";
