import type { Result } from "../contract/routes.ts";
import type { InstanceKey } from "./runtime.ts";

/** Stores build logs and application output, with secrets already redacted. They survive deployments and crashes. */
export interface LogStore {
  /** Appends lines, given without line feeds, to a build's log. Past the size limit the rest is dropped and the cut is marked once. */
  appendBuild(buildId: string, lines: readonly string[]): Promise<void>;
  /** Reads a build's log from a byte offset: whole lines with their line feeds, at most `maxBytes`. A single longer line is returned alone. */
  readBuild(
    buildId: string,
    offset: number,
    maxBytes: number,
  ): Promise<{ readonly text: string; readonly next_offset: number }>;
  /** Returns when the lines of a build's log were appended, oldest first; empty for a log without times. */
  readBuildTimes(buildId: string): Promise<readonly BuildTime[]>;
  /** Appends to a project's runtime log and rotates it. Stores `position` together with the lines. */
  appendRuntime(projectId: string, lines: readonly RuntimeLine[], position?: IngestPosition): Promise<void>;
  /**
   * Returns the newest `limit` lines, oldest first; with `after`, the first `limit` lines behind that cursor, so that a follower misses
   * none. A cursor into lines that rotation has deleted stands for the oldest kept line. A page holds at most 2 MiB, but at least one line.
   */
  readRuntime(projectId: string, query: RuntimeQuery): Promise<RuntimePage>;
  /** Calls `visit` with the lines that a query chooses, newest first as they were appended, until it returns false. Holds none of them in memory. */
  visitRuntime(projectId: string, query: RuntimeChoice, visit: (line: RuntimeLine) => boolean): Promise<void>;
  /**
   * Returns where ingestion of an instance's output stopped (null at first), so that a restart neither repeats nor loses lines. For each
   * ordinal of a workload only the position stored last is kept, for one attempt.
   */
  readPosition(instance: InstanceKey): Promise<string | null>;
  /** Forgets the positions of a workload whose output will not be read any more. Its lines stay. Idempotent. */
  forgetPositions(workloadId: string): Promise<void>;
  /** Appends to a project's log of requests, and drops its oldest ones past the size limit. */
  appendRequests(projectId: string, requests: readonly StoredRequest[]): Promise<void>;
  /** Calls `visit` with a project's requests of a time range, newest first as they were appended (when they end), until it returns false. */
  visitRequests(projectId: string, range: RequestRange, visit: (request: StoredRequest) => boolean): Promise<void>;
  /** Deletes a project's runtime log, its log of requests and the logs of these builds for good. Idempotent. */
  remove(projectId: string, buildIds: readonly string[]): Promise<void>;
  /** Deletes the logs of builds. Idempotent. */
  removeBuilds(buildIds: readonly string[]): Promise<void>;
}

/** The lines from a byte offset on, up to the next time's, were appended at this instant or less than a second later. */
export interface BuildTime {
  readonly offset: number;
  /** RFC 3339 in UTC with milliseconds. */
  readonly at: string;
}

/** How far an instance's output has been stored. */
export interface IngestPosition {
  readonly instance: InstanceKey;
  readonly cursor: string;
}

export interface RuntimeLine {
  readonly at: string;
  readonly deployment: number;
  readonly process: string;
  readonly replica: number;
  readonly text: string;
}

export interface RuntimeQuery extends RuntimeChoice {
  readonly limit: number;
  readonly after?: string;
}

export interface RuntimeChoice {
  /** Only lines of this process type. */
  readonly process?: string;
  readonly replica?: number;
  /** Only lines written at this instant or later: RFC 3339 in UTC with milliseconds, as in a line's `at`. */
  readonly since?: string;
  /** Only lines written before this instant. */
  readonly until?: string;
  readonly accepts?: (text: string) => boolean;
  /** Only lines that contain this text, ignoring case. */
  readonly contains?: string;
}

export type StoredRequest = Result<"requests.list">["requests"][number];

/** Instants like `RuntimeQuery`'s. */
export type RequestRange = Pick<RuntimeQuery, "since" | "until">;

export interface RuntimePage {
  readonly lines: readonly RuntimeLine[];
  /** The position behind the page's last line; pass it as `after` to continue. */
  readonly cursor: string;
}
