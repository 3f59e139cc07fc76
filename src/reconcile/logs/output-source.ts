import type { Redact } from "../../kit/redact.ts";
import type { Instance } from "../../ports/runtime.ts";

/** Whose output it is, and where to learn what must not be seen of it once it was read. */
export interface OutputSource {
  readonly workload_id: string;
  readonly project_id: string;
  readonly deployment: number;
  readonly process: string;
  readonly instances: readonly Instance[];
  redactor(): Promise<Redact>;
}

/** Moves what the workload's instances wrote into the project's log, without secrets, and lets the runtime forget it. */
export type IngestOutput = (source: OutputSource) => Promise<void>;
