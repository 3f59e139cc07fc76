import { readFileSync, renameSync, writeFileSync } from "node:fs";
import type { ProcessIdentity } from "../../kit/processes.ts";
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
  try {
    return JSON.parse(readFileSync(edgePaths(stateDir).current, "utf8")) as EdgeRecord;
  } catch {
    return undefined;
  }
}

/** Records this process as the current one. */
export function writeRecord(stateDir: string, record: EdgeRecord): void {
  writeWhole(edgePaths(stateDir).current, JSON.stringify(record));
}

/** Replaces a file atomically: a reader sees the old or the new content, never a part. Mode 0600. */
export function writeWhole(path: string, text: string): void {
  const draft = `${path}.${process.pid}.new`;
  writeFileSync(draft, text, { mode: 0o600 });
  renameSync(draft, path);
}
