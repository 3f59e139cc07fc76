import type { ProcessIdentity } from "../../kit/processes.ts";
import { readJson, replaceFile } from "../../kit/whole-file.ts";
import { edgePaths } from "./edge-settings.ts";

/**
 * Identifies the edge process that accepts connections. That process writes the record itself, before it loses write access to its folder.
 */
export interface EdgeRecord {
  readonly identity: ProcessIdentity;
  readonly fingerprint: string;
  readonly listen_host: string;
  /** The requested port: 0 means any. */
  readonly listen_port: number;
  /** The actual port. */
  readonly port: number;
  /** As requested; null or absent: no TLS. */
  readonly listen_tls_port?: number | null;
  readonly tls_port?: number | null;
  readonly started_at: string;
}

/** Reads the current record; undefined when it is missing or unreadable. */
export function readRecord(stateDir: string): EdgeRecord | undefined {
  return readJson(edgePaths(stateDir).current);
}

/** Records this process as the current one. */
export function writeRecord(stateDir: string, record: EdgeRecord): void {
  replaceFile(edgePaths(stateDir).current, JSON.stringify(record));
}
