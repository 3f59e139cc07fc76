import type { Quarantine, RefChange } from "../ports/repositories.ts";

/**
 * What the git transport needs from the rest of Berth: who calls, what they may see, and whether a push is accepted. Everything fails
 * closed: a method that throws denies access, and a push without a complete decision changes no ref.
 */
export interface GitGate {
  /** Returns the callers of an SSH key, one per organization; none if unknown or suspended. `fingerprint` is as OpenSSH prints it. */
  authenticateKey(fingerprint: string): Promise<readonly GitCaller[]>;
  authenticateToken(token: string): Promise<GitCaller | null>;
  /** Finds a project for one caller; unknown projects and those of other organizations are both `missing`. */
  findProject(caller: GitCaller, path: GitPath, access: GitAccess): Promise<ProjectLookup>;
  /** Decides on a push while the pusher waits and sees each line at once. Aborts with `push.signal` when the push can no longer succeed. */
  receive(push: PushRequest, onLine: (line: string) => void): Promise<PushDecision>;
  /** Called once after an accepted push has ended, whether or not git could move its refs. */
  completed(push: PushRequest): Promise<void>;
}

/** A key or token in one organization, on whose behalf git is called. */
export interface GitCaller {
  readonly kind: "key" | "token";
  readonly id: string;
  /** The name that its owner gave the key or token; shown in greetings and stored with builds. */
  readonly name: string;
  readonly organization_id: string;
  readonly organization_slug: string;
  /** Whether it may delete and rewrite branches and tags. */
  readonly may_rewrite: boolean;
}

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
  /** The project's former name, if the caller used it; absent if the caller used the current one. */
  readonly called?: string;
  /** Name of the branch that deploys, without `refs/heads/`; null before the first push. */
  readonly deploy_branch: string | null;
}

export type ProjectLookup =
  | { readonly outcome: "found"; readonly project: GitProject }
  | { readonly outcome: "missing" }
  /** The project is the caller's own but may not be accessed; `reason` is a sentence: deleted, suspended, or a missing right. */
  | { readonly outcome: "refused"; readonly reason: string }
  /** Berth can't serve the call now; calls admitted before continue. */
  | { readonly outcome: "unavailable"; readonly reason: string };

export interface PushRequest {
  readonly project: GitProject;
  readonly caller: GitCaller;
  /** Only branches and tags, and never the deletion of the deploy branch: other pushes are refused earlier. */
  readonly refs: readonly RefChange[];
  /** `plan`: the pusher wants to see what the push would do; nothing may change. */
  readonly wants: "deploy" | "plan";
  /** Null if the push brings no objects (a deletion). */
  readonly quarantine: Quarantine | null;
  /** Aborts when git ends before the decision, so that no ref can move any more, or when the caller loses the right to push. */
  readonly signal: AbortSignal;
}

export type PushDecision =
  /** `head`: the branch that clones check out from now on. */
  { readonly accepted: true; readonly head?: string } | { readonly accepted: false };
