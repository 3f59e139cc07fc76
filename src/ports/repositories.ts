import type { Readable } from "node:stream";

/**
 * The projects' bare git repositories. Objects are read with git's own plumbing, never from a checkout.
 * While a push is being decided its objects live in a quarantine that only the environment of the push can see.
 */
export interface Repositories {
  /** Makes the bare repository exist and returns its folder, for git's own server programs. Idempotent. */
  ensure(projectId: string): Promise<string>;
  /** What a pushed commit is, and whether it may be built; reads inside the push's quarantine. */
  inspect(projectId: string, commit: string, quarantine: Quarantine | null, limits: TreeLimits): Promise<Inspection>;
  /** The commit that a pushed tag stands for, whatever it is made of; null when that is no commit. */
  peel(projectId: string, tag: string, quarantine: Quarantine | null): Promise<string | null>;
  /**
   * Keeps the commit and all it needs outside of the quarantine, under a hidden ref named after `buildId`, so that it can be
   * built and, after a crash, still be found. Idempotent.
   */
  pin(projectId: string, buildId: string, commit: string, quarantine: Quarantine | null): Promise<void>;
  /** Lets a pinned commit go. Idempotent. */
  unpin(projectId: string, buildId: string): Promise<void>;
  /**
   * Makes a commit out of files that came without git, in a quarantine: it lasts only when it is pinned. Refuses what git or a build could
   * not take: paths and links that leave the tree, `.git`, devices, and more than the limits allow.
   */
  write(projectId: string, commit: NewCommit): Promise<Written>;
  /**
   * Brings the commit that a branch of a repository elsewhere points at, with all it needs, into a quarantine. It connects to no other address
   * than the one that was looked up and allowed, follows no redirect, and ends with the signal. What the other side does wrong is an outcome.
   */
  fetch(projectId: string, remote: Remote, signal: AbortSignal): Promise<Fetched>;
  /** A new key pair for `Remote.privateKey`; the public key is one line, as forges take it. */
  makeDeployKey(comment: string): Promise<{ readonly publicKey: string; readonly privateKey: string }>;
  /** Removes a quarantine that `write` or `fetch` made, and with it what was not pinned. Idempotent. */
  discard(projectId: string, quarantine: Quarantine): Promise<void>;
  /** The commit that is pinned under this name, or null. */
  pinned(projectId: string, name: string): Promise<string | null>;
  /** The first parent of a commit, or null. */
  parentOf(projectId: string, commit: string): Promise<string | null>;
  /** The files of a commit, or of one of its folders, at most `limit` of them. */
  files(projectId: string, commit: string, limit: number, part?: PartOfCommit): Promise<readonly StoredFile[]>;
  /** One file's content; null when there is no such file, or it is larger than `maxBytes`. */
  read(projectId: string, commit: string, file: FileToRead): Promise<Buffer | null>;
  /** The paths that differ between two commits, at most `limit` of them; null when the first commit is gone. */
  changedPaths(projectId: string, change: CommitChange, limit: number): Promise<readonly string[] | null>;
  /** The tree of a commit, or of one of its folders, as a tar stream; errors destroy the stream. */
  archive(projectId: string, commit: string, part?: PartOfCommit): Readable;
  /** The commit a full ref name such as `refs/heads/main` points at, or null. */
  resolve(projectId: string, ref: string): Promise<string | null>;
  /** Moves a branch if it still points at `from` (null: does not exist); false when it does not. */
  moveRef(projectId: string, ref: string, from: string | null, to: string): Promise<boolean>;
  /**
   * Removes a ref that lost its value when the machine lost its power, which nothing could move any more; an older value may show again.
   * Answers whether there was such a one.
   */
  repairRef(projectId: string, ref: string): Promise<boolean>;
  /** Makes a branch (full ref name) the one that a clone checks out. Idempotent; the branch need not exist yet. */
  setHead(projectId: string, ref: string): Promise<void>;
  /** Deletes the project's repository for good. Idempotent. */
  remove(projectId: string): Promise<void>;
  /** Deletes what crashed pushes left behind and packs what many pushes scattered. */
  sweep(): Promise<void>;
}

export interface PartOfCommit {
  /** Left out or empty: the whole tree. */
  readonly folder?: string;
  /** Of the push that brings the commit. */
  readonly quarantine?: Quarantine | null;
}

export interface FileToRead {
  readonly path: string;
  readonly maxBytes: number;
  /** Of the push that brings the commit. */
  readonly quarantine?: Quarantine | null;
}

export interface CommitChange {
  readonly from: string;
  readonly to: string;
  readonly quarantine: Quarantine | null;
}

export interface NewCommit {
  readonly parent: string | null;
  /** The commit whose files stay unless they are named; null: only the given files. */
  readonly base: string | null;
  /** Files and folders of `base` that go. */
  readonly removed: readonly string[];
  /** A tar archive, gzip or not, or files as they are. */
  readonly content: { readonly archive: AsyncIterable<Uint8Array> } | { readonly files: readonly NewFile[] };
  readonly message: string;
  readonly author: string;
  readonly limits: TreeLimits & { readonly archiveBytes: number };
}

export interface NewFile {
  readonly path: string;
  readonly content: Uint8Array;
  /** Left out: as it was, or else a plain file. */
  readonly executable?: boolean | undefined;
}

export type Written =
  | { readonly outcome: "written"; readonly commit: string; readonly quarantine: Quarantine }
  | { readonly outcome: "refused"; readonly code: "invalid" | "too_large"; readonly summary: string };

/** A branch of a repository elsewhere. */
export interface Remote {
  /** `https://host/path` or `ssh://user@host:port/path`, without a password. */
  readonly url: string;
  readonly branch: string;
  /** For HTTPS: sent as a password. */
  readonly token: string | null;
  /** For SSH, in OpenSSH's format. */
  readonly privateKey: string | null;
  /** For SSH: the lines of known_hosts(5) that the host must match; null accepts any host key and reports it. */
  readonly hostKeys: string | null;
  /** The fingerprint that the host's key must have, `SHA256:…`; null: any. */
  readonly hostKeyPin: string | null;
  /** A commit that is here already: when the branch points at it, nothing is fetched. */
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
  /** `reason` is a sentence for the tenant and holds no token and no key. */
  | { readonly outcome: "failed"; readonly reason: string };

export interface StoredFile {
  readonly path: string;
  readonly size_bytes: number;
  readonly executable: boolean;
}

/** git's own variables of a push in progress (git-receive-pack(1), "Quarantine environment"). */
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
      /** What a pusher should know although it stops nothing, such as submodules that are not fetched. */
      readonly notes?: readonly string[];
    }
  | { readonly outcome: "refused"; readonly code: string; readonly summary: string; readonly hint: string };
