import type { GitCaller, GitProject, PushDecision, PushRequest } from "./gate.ts";

/** One push: who pushes where, what the hook asked, and what was decided. */
export class Push {
  readonly project: GitProject;
  readonly caller: GitCaller;
  /** The repository's folder. */
  readonly dir: string;
  /** What was put to the gate; null until then. */
  request: PushRequest | null = null;
  #decision: Promise<PushDecision> | null = null;
  #isDecided = false;
  #reason: string | undefined;
  readonly #abandoned = new AbortController();

  constructor(project: GitProject, caller: GitCaller, dir: string) {
    this.project = project;
    this.caller = caller;
    this.dir = dir;
  }

  /** Settles with the decision; never rejects. Null until the hook has asked, which it may do once. */
  get decision(): Promise<PushDecision> | null {
    return this.#decision;
  }

  decide(decision: Promise<PushDecision>): Promise<PushDecision> {
    this.#decision = decision;
    return decision.finally(() => (this.#isDecided = true));
  }

  /** Aborts when the push can no longer move a ref before it is decided. */
  get signal(): AbortSignal {
    return this.#abandoned.signal;
  }

  /** Ends the push before its decision; the pusher reads the reason if he is still connected. */
  abandon(reason?: string): void {
    if (this.#isDecided) return;
    this.#reason ??= reason;
    this.#abandoned.abort();
  }

  get reason(): string | undefined {
    return this.#reason;
  }
}
