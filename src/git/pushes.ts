import { randomBytes } from "node:crypto";
import type { GitCaller, GitProject, PushDecision, PushRequest } from "./gate.ts";

/** Pushes between the start and the end of their git process, found by an id that nobody can guess. */
export class Pushes {
  readonly #pushes = new Map<string, Push>();

  /** Opens a push; its id goes to git's environment, and from there to the hook. */
  begin(project: GitProject, caller: GitCaller, dir: string): Push {
    const id = randomBytes(24).toString("base64url");
    const push = new Push({ id, project, caller, dir });
    this.#pushes.set(id, push);
    return push;
  }

  find(id: string): Push | undefined {
    return this.#pushes.get(id);
  }

  /** Forgets a push whose git process has ended. */
  end(push: Push): void {
    this.#pushes.delete(push.id);
  }
}

interface PushOrigin {
  readonly id: string;
  readonly project: GitProject;
  readonly caller: GitCaller;
  /** The repository's folder. */
  readonly dir: string;
}

/** One push: who pushes where, what the hook asked, and what was decided. */
export class Push implements PushOrigin {
  readonly id: string;
  readonly project: GitProject;
  readonly caller: GitCaller;
  readonly dir: string;
  /** What was put to the gate; null until then. */
  request: PushRequest | null = null;
  #decision: Promise<PushDecision> | null = null;
  #isDecided = false;
  #reason: string | undefined;
  readonly #dead = new AbortController();

  constructor(origin: PushOrigin) {
    this.id = origin.id;
    this.project = origin.project;
    this.caller = origin.caller;
    this.dir = origin.dir;
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
    return this.#dead.signal;
  }

  /** Nothing may come of it any more; `reason` is for the pusher, if he still listens. */
  abandon(reason?: string): void {
    if (this.#isDecided) return;
    this.#reason ??= reason;
    this.#dead.abort();
  }

  get reason(): string | undefined {
    return this.#reason;
  }
}
