import type { Socket } from "node:net";
import type { LiveRoute } from "./live-routes.ts";
import { pickTarget, type EdgeTarget } from "./target.ts";
import type { UpstreamConnection } from "./upstream-connection.ts";

const maxAttempts = 4;
const none: readonly EdgeTarget[] = [];

/** Receives the outcome of `UpstreamAttempts`. */
export interface AttemptsUser {
  /** Connections are to become streams. */
  readonly isUpgrade: boolean;
  connected(connection: UpstreamConnection): void;
  /** No replica accepts a connection; nothing was sent. */
  unreachable(reason: string): void;
}

/** Connects one request to one of its route's replicas, and to another one when that refuses. Counts the request as open at the replica. */
export class UpstreamAttempts {
  /** Since when a connection is being opened; undefined while none is. */
  connectingSinceMs: number | undefined;
  /** The replica that has the request. */
  target: EdgeTarget | undefined;
  readonly #route: LiveRoute;
  readonly #user: AttemptsUser;
  #socket: Socket | undefined;
  // Created late: the first replica takes nearly every request.
  #refused: EdgeTarget[] | undefined;

  constructor(route: LiveRoute, user: AttemptsUser) {
    this.#route = route;
    this.#user = user;
  }

  /** Connects to a replica, over an idle connection that was used within `idleAtMostMs` if there is one. */
  start(idleAtMostMs: number, reason = "no replica"): void {
    const target = this.#next();
    if (target === undefined) return this.#user.unreachable(reason);
    this.target = target;
    target.open += 1;
    this.#route.load.open += 1;
    this.#route.load.start(() => this.#connect(target, idleAtMostMs));
  }

  /** Opens a new connection to the present replica. */
  connectAgain(idleAtMostMs = -1): void {
    const target = this.target as EdgeTarget;
    let reason = "closed";
    const noteReason = (error: Error) => void (reason = error.message);
    const failed = () => {
      // The request has ended, or goes elsewhere already.
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

  /** Gives up the connection that is being opened, and goes to the next replica. */
  expire(): void {
    this.#socket?.destroy(new Error("no connection in time"));
  }

  /** The request is over for the present replica; a connection that is being opened is dropped. */
  leave(): void {
    const socket = this.#socket;
    this.#socket = this.connectingSinceMs = undefined;
    socket?.destroy();
    if (this.target === undefined) return;
    this.target.open -= 1;
    this.#route.load.open -= 1;
    this.target = undefined;
  }

  /** Over an idle connection if there is one. The request may have ended while it waited for its turn. */
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
