import type { Redact } from "../../kit/redact.ts";
import type { Instance } from "../../ports/runtime.ts";

/** Describes output to ingest, and how to get the redactor once it was read. */
export interface OutputSource {
  readonly workload_id: string;
  readonly project_id: string;
  readonly deployment: number;
  readonly process: string;
  readonly instances: readonly Instance[];
  redactor(): Promise<Redact>;
}

/** Moves the output of a workload's instances into the project's log, with secrets redacted, and lets the runtime discard it. */
export type IngestOutput = (source: OutputSource) => Promise<void>;
