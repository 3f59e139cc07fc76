import type { LiveRoute } from "./live-routes.ts";
import { pickTarget, type EdgeTarget } from "./target.ts";

const mostAttempts = 4;
const none: readonly EdgeTarget[] = [];

/** The replicas that one request is sent to in turn, until one takes it. The present one counts it as open. */
export class Attempts {
  /** The present one. */
  target: EdgeTarget | undefined;
  readonly #route: LiveRoute;
  // Made late: nearly every request is taken by its first replica.
  #refused: EdgeTarget[] | undefined;

  constructor(route: LiveRoute) {
    this.#route = route;
  }

  /** Goes to another replica; undefined when none is left, or enough have refused. */
  next(): EdgeTarget | undefined {
    const refused = this.#refused ?? none;
    const target =
      refused.length < mostAttempts ? pickTarget(this.#route.targets, this.#route.turn++, refused) : undefined;
    if (target !== undefined) target.open += 1;
    return (this.target = target);
  }

  /** The present one accepts no connection; others' requests then avoid it for a while. */
  refused(): void {
    if (this.target === undefined) return;
    this.target.refused();
    (this.#refused ??= []).push(this.target);
    this.leave();
  }

  /** The request is over for the present one. */
  leave(): void {
    if (this.target !== undefined) this.target.open -= 1;
    this.target = undefined;
  }
}
