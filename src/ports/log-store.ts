import type { InstanceKey } from "./runtime.ts";

/** Keeps build logs and the output of applications, already free of secrets, over deployments and crashes. */
export interface LogStore {
  /** Adds to a build's log; lines have no line feed and get one. Past the size limit the rest is cut and marked once. */
  appendBuild(buildId: string, lines: readonly string[]): Promise<void>;
  /** A build's log from a byte offset on, at most `maxBytes`, whole lines with their line feeds; one longer line comes alone. */
  readBuild(
    buildId: string,
    offset: number,
    maxBytes: number,
  ): Promise<{ readonly text: string; readonly next_offset: number }>;
  /** Adds to a project's runtime log and rotates it; remembers `position` together with the lines. */
  appendRuntime(projectId: string, lines: readonly RuntimeLine[], position?: IngestPosition): Promise<void>;
  /**
   * The newest `limit` lines, oldest first; with `after` the first `limit` lines behind that cursor, so that no reader who
   * reads on misses one. A cursor into what rotation has deleted means the oldest line that is kept. Fewer come when they are
   * longer than 2 MiB together; one at least.
   */
  readRuntime(projectId: string, query: RuntimeQuery): Promise<RuntimePage>;
  /**
   * Where ingestion of an instance's output stopped, so that a restart neither repeats nor loses lines; null at first. Of each
   * ordinal of a workload one attempt's position is remembered, the last one that was stored.
   */
  readPosition(instance: InstanceKey): Promise<string | null>;
  /** Nothing more of a workload's output is going to be read. Its lines stay. Idempotent. */
  forgetPositions(workloadId: string): Promise<void>;
  /** Deletes a project's runtime log and the logs of these builds for good. Idempotent. */
  remove(projectId: string, buildIds: readonly string[]): Promise<void>;
  /** Deletes the logs of builds. Idempotent. */
  removeBuilds(buildIds: readonly string[]): Promise<void>;
}

/** Up to where an instance's output has been stored. */
export interface IngestPosition {
  readonly instance: InstanceKey;
  readonly cursor: string;
}

export interface RuntimeLine {
  readonly at: string;
  readonly deployment: number;
  /** The process type. */
  readonly process: string;
  readonly replica: number;
  readonly text: string;
}

export interface RuntimeQuery {
  readonly limit: number;
  readonly after?: string;
  /** The lines of this process type alone. */
  readonly process?: string;
  /** The lines of the replicas with this number alone. */
  readonly replica?: number;
  /** The lines written at this instant or later: RFC 3339 in UTC with milliseconds, as in a line's `at`. */
  readonly since?: string;
  /** The lines written before this instant. */
  readonly until?: string;
  /** The lines that contain this text, in upper or lower case. */
  readonly contains?: string;
}

export interface RuntimePage {
  readonly lines: readonly RuntimeLine[];
  /** Behind the last line of the page; give it as `after` to go on. */
  readonly cursor: string;
}
