import type { GitCaller, GitProject, PushDecision, PushRequest } from "./gate.ts";

/** One push: who pushes where, the hook's question, and the decision. */
export class Push {
  readonly project: GitProject;
  readonly caller: GitCaller;
  readonly dir: string;
  /** The request sent to the gate; null until then. */
  request: PushRequest | null = null;
  /** The client said that its history ends at some commits. */
  isShallow = false;
  #decision: Promise<PushDecision> | null = null;
  #isDecided = false;
  #reason: string | undefined;
  readonly #abandoned = new AbortController();

  constructor(project: GitProject, caller: GitCaller, dir: string) {
    this.project = project;
    this.caller = caller;
    this.dir = dir;
  }

  /** Resolves to the decision; never rejects. Null until the hook has sent its request, which it may do once. */
  get decision(): Promise<PushDecision> | null {
    return this.#decision;
  }

  decide(decision: Promise<PushDecision>): Promise<PushDecision> {
    this.#decision = decision;
    return decision.finally(() => (this.#isDecided = true));
  }

  /** Aborts when the push can no longer move a ref and is not decided yet. */
  get signal(): AbortSignal {
    return this.#abandoned.signal;
  }

  /** Abandons an undecided push. The pusher sees the reason if still connected. */
  abandon(reason?: string): void {
    if (this.#isDecided) return;
    this.#reason ??= reason;
    this.#abandoned.abort();
  }

  get reason(): string | undefined {
    return this.#reason;
  }
}
