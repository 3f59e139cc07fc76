import type { Result } from "../contract/routes.ts";
import type { Readable } from "node:stream";

/**
 * The projects' bare git repositories. Objects are read with git's plumbing commands, never from a checkout. Until a push is accepted, its
 * objects are in a quarantine that is visible only with the push's environment variables.
 */
export interface Repositories {
  /**
   * Creates the bare repository if it is missing and returns its folder, for git's own server programs. If `hasCommits`, throws
   * `PartMissing` instead, unless the operator has put an empty folder in its place. Idempotent.
   */
  ensure(projectId: string, hasCommits?: boolean): Promise<string>;
  exists(projectId: string): Promise<boolean>;
  /** Describes a pushed commit and decides whether it may be built; reads inside the push's quarantine. */
  inspect(projectId: string, commit: string, quarantine: Quarantine | null, limits: TreeLimits): Promise<Inspection>;
  /** Returns the commit that a pushed tag points to, through any chain of tags; null when it points to something else. */
  peel(projectId: string, tag: string, quarantine: Quarantine | null): Promise<string | null>;
  /**
   * Makes, before anything is built, the checks that git makes after its hook: whether all objects that the new values need are there, and
   * whether the refs can be set. Returns what git says against it, or null. Changes nothing.
   */
  checkRefs(projectId: string, refs: readonly RefChange[], quarantine: Quarantine | null): Promise<string | null>;
  /** Counts the commits that only one of two commits contains; null if one of them is missing. */
  countCommits(projectId: string, between: CommitChange): Promise<CommitCounts | null>;
  /** Moves the commit with its objects out of the quarantine, under a hidden ref named after `buildId`, for builds. Idempotent. */
  pin(projectId: string, buildId: string, commit: string, quarantine: Quarantine | null): Promise<void>;
  /** Deletes the hidden ref of a pinned commit. Idempotent. */
  unpin(projectId: string, buildId: string): Promise<void>;
  /**
   * Creates a commit from files that were not pushed with git, in a quarantine: it is lost unless it is pinned. Refuses what git or a build
   * could not handle: paths and links that leave the tree, `.git`, devices, and anything beyond the limits.
   */
  write(projectId: string, commit: NewCommit): Promise<Written>;
  /**
   * Fetches the commit at the tip of a branch of a remote repository, with all objects it needs, into a quarantine. Connects only to the
   * address that was resolved and allowed, follows no redirect, and stops when `signal` aborts. A failure of the other side is an outcome.
   */
  fetch(projectId: string, remote: Remote, signal: AbortSignal): Promise<Fetched>;
  /** Creates a key pair for `Remote.privateKey`. The public key is one line, in the format that git forges accept. */
  makeDeployKey(comment: string): Promise<{ readonly publicKey: string; readonly privateKey: string }>;
  /** Removes a quarantine of `write` or `fetch`, and with it everything that was not pinned. Idempotent. */
  discard(projectId: string, quarantine: Quarantine): Promise<void>;
  pinned(projectId: string, name: string): Promise<string | null>;
  parentOf(projectId: string, commit: string): Promise<string | null>;
  /** Lists at most `limit` files of a commit or of one of its folders. */
  files(projectId: string, commit: string, limit: number, part?: PartOfCommit): Promise<readonly StoredFile[]>;
  /** Returns a file's content; null when there is no such file or it is larger than `maxBytes`. */
  read(projectId: string, commit: string, file: FileToRead): Promise<Buffer | null>;
  /** Lists at most `limit` paths that differ between two commits; null when the first commit no longer exists. */
  changedPaths(projectId: string, change: CommitChange, limit: number): Promise<readonly string[] | null>;
  /** Compares two commits: commits, changed files and their lines; null when one no longer exists. What limits cut off is missing. */
  compare(projectId: string, change: ComparedCommits, limits: ComparisonLimits): Promise<Comparison | null>;
  /** Streams the tree of a commit, or of one of its folders, as a tar archive. An error destroys the stream. */
  archive(projectId: string, commit: string, part?: PartOfCommit): Readable;
  /** Streams all refs, or only a pinned commit, with all their objects, as of one moment; null when there are none. */
  pack(projectId: string, part?: PinnedPart): Promise<Readable | null>;
  /** Sets all refs of such a stream. */
  unpack(projectId: string, bundle: Readable): Promise<void>;
  /** Returns the commit that a full ref name such as `refs/heads/main` points to, or null. */
  resolve(projectId: string, ref: string): Promise<string | null>;
  /** Moves a branch if it still points to `from` (null: does not exist); returns false when it does not. */
  moveRef(projectId: string, ref: string, from: string | null, to: string): Promise<boolean>;
  /** Removes a ref whose value a power failure lost; an older value may reappear. Returns whether it was damaged. */
  repairRef(projectId: string, ref: string): Promise<boolean>;
  /** Sets the branch (full ref name) that a clone checks out. Idempotent. The branch need not exist yet. */
  setHead(projectId: string, ref: string): Promise<void>;
  /** Returns how much disk the project's repository uses, in bytes, 0 before the first push; null when measuring took too long. */
  diskBytes(projectId: string): Promise<number | null>;
  /** Deletes the project's repository for good. Idempotent. */
  remove(projectId: string): Promise<void>;
  /** Deletes what crashed pushes left behind and repacks loose objects and small packs. */
  sweep(): Promise<void>;
}

/** One ref of a push; `old` or `new` is null where the ref does not exist. */
export interface RefChange {
  readonly name: string;
  readonly old: string | null;
  readonly new: string | null;
}

export interface CommitCounts {
  /** Commits of `to` that `from` does not contain. */
  readonly added: number;
  /** Commits of `from` that `to` does not contain; 0: `to` continues `from`. */
  readonly removed: number;
}

export interface ComparedCommits extends Pick<CommitChange, "from" | "to" | "beside"> {
  /** Only this file. */
  readonly path?: string | undefined;
}

export interface ComparisonLimits {
  readonly commits: number;
  readonly files: number;
  /** The lines of one file, and of all files together. */
  readonly fileBytes: number;
  readonly bytes: number;
  readonly timeoutMs: number;
}

export interface Comparison {
  /** Newest first. `removed`: only `from` contains it. */
  readonly commits: readonly {
    readonly side: "added" | "removed";
    readonly commit: string;
    readonly author: string;
    readonly message: string;
    readonly at: Date;
  }[];
  readonly files: readonly ChangedFile[];
  /** Whether nothing was left out, except what the files' own `cut` says. */
  readonly complete: boolean;
}

export type ChangedFile = NonNullable<Result<"deployments.lines">["files"]>[number];

export interface PinnedPart {
  readonly pin: string;
  /** A commit that the receiver has, so that its history is left out; ignored when this repository does not have it. */
  readonly since: string | null;
}

export interface PartOfCommit {
  /** Absent or empty: the whole tree. */
  readonly folder?: string;
  /** The quarantine of the push that contains the commit. */
  readonly quarantine?: Quarantine | null;
}

export interface FileToRead {
  readonly path: string;
  readonly maxBytes: number;
  /** The quarantine of the push that contains the commit. */
  readonly quarantine?: Quarantine | null;
}

export interface CommitChange {
  readonly from: string;
  readonly to: string;
  readonly quarantine: Quarantine | null;
  /** Another project whose repository exists and is read too, when there is no quarantine: each may lack one of the commits. */
  readonly beside?: string | undefined;
}

export interface NewCommit {
  readonly parent: string | null;
  /** The commit whose files are kept unless `removed` or `content` names them. Null: the commit holds only the given files. */
  readonly base: string | null;
  /** Files and folders of `base` to delete. */
  readonly removed: readonly string[];
  /** A tar archive, optionally gzipped, or individual files. */
  readonly content: { readonly archive: AsyncIterable<Uint8Array> } | { readonly files: readonly NewFile[] };
  readonly message: string;
  readonly author: string;
  readonly limits: TreeLimits & { readonly archiveBytes: number };
}

export interface NewFile {
  readonly path: string;
  readonly content: Uint8Array;
  /** Defaults to the file's mode in `base`, or to a plain file. */
  readonly executable?: boolean | undefined;
}

export type Written =
  | { readonly outcome: "written"; readonly commit: string; readonly quarantine: Quarantine }
  | { readonly outcome: "refused"; readonly code: "invalid" | "too_large"; readonly summary: string };

export interface Remote {
  /** `https://host/path` or `ssh://user@host:port/path`, without a password. */
  readonly url: string;
  readonly branch: string;
  /** For HTTPS: sent as the password. */
  readonly token: string | null;
  /** For SSH, in OpenSSH's format. */
  readonly privateKey: string | null;
  /** For SSH: known_hosts(5) lines that the host must match. Null accepts any host key and reports it. */
  readonly hostKeys: string | null;
  /** The fingerprint that the host key must have, `SHA256:…`. Null: any. */
  readonly hostKeyPin: string | null;
  /** A commit that already exists locally. When the branch points to it, nothing is fetched. */
  readonly known: string | null;
  readonly maxBytes: number;
}

export type Fetched =
  | {
      readonly outcome: "fetched";
      readonly commit: string;
      readonly quarantine: Quarantine;
      readonly hostKeys: string | null;
    }
  | { readonly outcome: "unchanged"; readonly commit: string; readonly hostKeys: string | null }
  /** `reason` is a sentence for the tenant and contains no token or key. */
  | {
      readonly outcome: "failed";
      readonly reason: string;
      /** The repository answered, and has no such branch. */
      readonly isMissing?: true;
    };

export type StoredFile = Result<"builds.source">["files"][number];

/** The environment variables that git sets during a push (git-receive-pack(1), "Quarantine environment"). */
export interface Quarantine {
  readonly GIT_OBJECT_DIRECTORY: string;
  readonly GIT_ALTERNATE_OBJECT_DIRECTORIES: string;
  readonly GIT_QUARANTINE_PATH: string;
}

export interface TreeLimits {
  readonly entries: number;
  readonly bytes: number;
}

export type Inspection =
  | {
      readonly outcome: "fine";
      /** The first line of the commit's message, at most 200 characters. */
      readonly message: string;
      readonly author: string;
      /** Warnings for the person who pushes, such as submodules that are not fetched. */
      readonly notes?: readonly string[];
    }
  | { readonly outcome: "refused"; readonly code: string; readonly summary: string; readonly hint: string };
