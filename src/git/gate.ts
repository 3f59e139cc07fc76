import type { Quarantine } from "../ports/repositories.ts";

/**
 * What git's transport asks of the rest of Berth: who calls, what they may see, and whether a push is accepted. Everything here
 * fails closed: an answer that throws denies, and a push without a complete answer changes no ref.
 */
export interface GitGate {
  /**
   * The callers that an SSH key stands for: one per organization that registered it, none when unknown or suspended.
   * `fingerprint` is OpenSSH's (`SHA256:` and base64 without padding).
   */
  authenticateKey(fingerprint: string): Promise<readonly GitCaller[]>;
  /** The caller an API token stands for, or null. */
  authenticateToken(token: string): Promise<GitCaller | null>;
  /** Finds a project for one caller; foreign and unknown projects are both `missing`. */
  findProject(caller: GitCaller, path: GitPath, access: GitAccess): Promise<ProjectLookup>;
  /**
   * Decides a push while its pusher waits, usually by building and releasing it; each line is shown to the pusher at once.
   * May run for many minutes. `push.signal` aborts when the push can no longer succeed.
   */
  receive(push: PushRequest, onLine: (line: string) => void): Promise<PushDecision>;
  /** Called once after an accepted push has ended, whether git could move its refs or not. */
  completed(push: PushRequest): Promise<void>;
}

/** Who calls: a key or a token, in one organization. */
export interface GitCaller {
  readonly kind: "key" | "token";
  /** Id of the key or token. */
  readonly id: string;
  /** What the person called it; shown in greetings and stored with builds. */
  readonly name: string;
  readonly organization_id: string;
  readonly organization_slug: string;
}

/** A repository as named in its URL. */
export interface GitPath {
  readonly organization_slug: string;
  readonly project_slug: string;
}

/** `write` is a push, `read` a clone or fetch. */
export type GitAccess = "read" | "write";

export interface GitProject {
  readonly id: string;
  readonly organization_id: string;
  readonly slug: string;
  /** The earlier name by which the caller asked for it; left out where it is the present one. */
  readonly called?: string;
  /** Name of the branch that deploys, without `refs/heads/`; null before the first push. */
  readonly deploy_branch: string | null;
}

export type ProjectLookup =
  | { readonly outcome: "found"; readonly project: GitProject }
  | { readonly outcome: "missing" }
  /** The caller's own project, with a sentence why not: deleted, suspended, or a missing right. */
  | { readonly outcome: "refused"; readonly reason: string }
  /** The platform can't take it now; what was admitted before goes on. */
  | { readonly outcome: "unavailable"; readonly reason: string };

/** One ref of a push; `old` or `new` is null where the ref is created or deleted. */
export interface RefUpdate {
  readonly name: string;
  readonly old: string | null;
  readonly new: string | null;
}

export interface PushRequest {
  readonly project: GitProject;
  readonly caller: GitCaller;
  /** Only branches and tags, never the deletion of the deploy branch: other pushes are refused before. */
  readonly refs: readonly RefUpdate[];
  /** `plan`: the pusher wants to read what the push would do, and nothing may move. */
  readonly wants: "deploy" | "plan";
  /** Null when the push brings no objects (a deletion). */
  readonly quarantine: Quarantine | null;
  /** Aborts when git has ended before the decision, so that no ref can move any more, or when the caller's right to push has. */
  readonly signal: AbortSignal;
}

export type PushDecision =
  /** With `head` (a branch name) clones check that branch out from now on. */
  { readonly accepted: true; readonly head?: string } | { readonly accepted: false };
