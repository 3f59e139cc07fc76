import type { Socket } from "node:net";
import type { LiveRoute } from "./live-routes.ts";
import { pickTarget, type EdgeTarget } from "./target.ts";
import type { UpstreamConnection } from "./upstream-connection.ts";

const maxAttempts = 4;
const none: readonly EdgeTarget[] = [];

/** Receives the outcome of `UpstreamAttempts`. */
export interface AttemptsUser {
  /** The connections will become streams. */
  readonly isUpgrade: boolean;
  connected(connection: UpstreamConnection): void;
  /** No replica accepted a connection; nothing was sent. */
  unreachable(reason: string): void;
}

/** Connects one request to one of its route's replicas, and to the next one if that refuses. Counts the request as open at the replica. */
export class UpstreamAttempts {
  /** The time since which a connection is being opened; undefined while none is. */
  connectingSinceMs: number | undefined;
  /** The replica that handles the request. */
  target: EdgeTarget | undefined;
  readonly #route: LiveRoute;
  readonly #user: AttemptsUser;
  #socket: Socket | undefined;
  // Created lazily: the first replica accepts nearly every request.
  #refused: EdgeTarget[] | undefined;

  constructor(route: LiveRoute, user: AttemptsUser) {
    this.#route = route;
    this.#user = user;
  }

  /** Connects to a replica, preferably over an idle connection that was used within `idleAtMostMs`. */
  start(idleAtMostMs: number, reason = "no replica"): void {
    const target = this.#next();
    if (target === undefined) return this.#user.unreachable(reason);
    this.#connectTo(target, idleAtMostMs);
  }

  #connectTo(target: EdgeTarget, idleAtMostMs: number): void {
    this.target = target;
    target.open += 1;
    this.#route.load.open += 1;
    this.#route.load.start(() => this.#connect(target, idleAtMostMs));
  }

  /** Opens another connection to the same replica. */
  connectAgain(idleAtMostMs = -1): void {
    const target = this.target as EdgeTarget;
    let reason = "closed";
    const noteReason = (error: Error) => void (reason = error.message);
    const failed = () => {
      // The request has ended or already uses another connection.
      if (this.#socket !== socket) return;
      target.avoid();
      (this.#refused ??= []).push(target);
      this.leave();
      this.start(idleAtMostMs, `${target.key}: ${reason}`);
    };
    this.connectingSinceMs = performance.now();
    const socket = target.connect(this.#user.isUpgrade, (connection) => {
      socket.off("error", noteReason).off("close", failed);
      this.#socket = this.connectingSinceMs = undefined;
      this.#user.connected(connection);
    });
    this.#socket = socket.on("error", noteReason).on("close", failed);
  }

  /** Connects to another replica after this one failed; returns false if there is none. */
  tryAnother(): boolean {
    (this.#refused ??= []).push(this.target as EdgeTarget);
    const next = this.#next();
    if (next === undefined) return false;
    this.leave();
    this.#connectTo(next, Number.POSITIVE_INFINITY);
    return true;
  }

  /** Abandons the connection that is being opened, and tries the next replica. */
  expire(): void {
    this.#socket?.destroy(new Error("no connection in time"));
  }

  /** Releases the current replica; closes a connection that is still being opened. */
  leave(): void {
    const socket = this.#socket;
    this.#socket = this.connectingSinceMs = undefined;
    socket?.destroy();
    if (this.target === undefined) return;
    this.target.open -= 1;
    this.#route.load.open -= 1;
    this.target = undefined;
  }

  /** Uses an idle connection if there is one. The request may have ended while it was queued. */
  #connect(target: EdgeTarget, idleAtMostMs: number): void {
    if (this.target !== target) return;
    const idle = target.takeIdle(idleAtMostMs);
    if (idle === undefined) this.connectAgain(idleAtMostMs);
    else this.#user.connected(idle);
  }

  #next(): EdgeTarget | undefined {
    const refused = this.#refused ?? none;
    return refused.length < maxAttempts ? pickTarget(this.#route.targets, this.#route.turn++, refused) : undefined;
  }
}
