export { saveMachine, type MachineDescription } from "./queries.ts";
