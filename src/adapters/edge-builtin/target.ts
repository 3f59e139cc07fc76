import { UpstreamConnection } from "./upstream-connection.ts";
import type { UpstreamSocket } from "./upstream-socket.ts";

const avoidAfterRefusalMs = 1000;

/** One replica: its open requests, its idle connections, and whether it recently refused a connection. */
export class EdgeTarget {
  readonly key: string;
  /** The number of requests and tunnels open to it. */
  open = 0;
  avoidUntilMs = 0;
  /** No route names it any more: its connections close as their requests end. */
  retired = false;
  readonly #host: string;
  readonly #port: number;
  readonly #idle: UpstreamConnection[] = [];

  constructor(host: string, port: number) {
    this.#host = host;
    this.#port = port;
    this.key = targetKey(host, port);
  }

  /** Takes an idle connection whose last request ended within `idleAtMostMs`, if there is one. */
  takeIdle(idleAtMostMs: number): UpstreamConnection | undefined {
    const latest = this.#idle.at(-1);
    if (latest === undefined) return undefined;
    if (performance.now() - latest.idleSinceMs > Math.min(idleAtMostMs, latest.keptIdleMs)) return undefined;
    latest.reused = true;
    return this.#idle.pop();
  }

  /** Opens a connection, as a stream if an upgrade is to follow. On failure the socket emits `close`, and never an unhandled `error`. */
  connect(isStream: boolean, connected: (connection: UpstreamConnection) => void): UpstreamSocket {
    const connection = new UpstreamConnection(isStream);
    const { socket } = connection;
    socket.setNoDelay(true).setKeepAlive(true, 60_000);
    socket.once("connect", () => connected(connection));
    socket.once("close", () => this.#forget(connection));
    return socket.connect({ host: this.#host, port: this.#port });
  }

  /** Closes connections that the replica is about to close. */
  sweep(nowMs: number): void {
    for (const { socket, idleSinceMs, keptIdleMs } of this.#idle)
      if (nowMs - idleSinceMs > keptIdleMs) socket.destroy();
  }

  /** Keeps a connection for later requests, if it is still usable. */
  keep(connection: UpstreamConnection): void {
    if (this.retired) return void connection.socket.destroy();
    connection.idleSinceMs = performance.now();
    this.#idle.push(connection);
  }

  /** Makes new requests avoid this replica for a while. */
  avoid(): void {
    this.avoidUntilMs = performance.now() + avoidAfterRefusalMs;
  }

  retire(): void {
    this.retired = true;
    for (const { socket } of this.#idle.splice(0)) socket.destroy();
  }

  #forget(connection: UpstreamConnection): void {
    const at = this.#idle.indexOf(connection);
    if (at !== -1) this.#idle.splice(at, 1);
  }
}

/** Returns a target's name in tables and counts. */
export function targetKey(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * Picks the replica with the fewest open requests, round-robin among equals; a replica that recently refused only when no other is left.
 */
export function pickTarget(
  targets: readonly EdgeTarget[],
  turn: number,
  tried: readonly EdgeTarget[],
): EdgeTarget | undefined {
  if (targets.length === 1) return tried.length === 0 ? targets[0] : undefined;
  const now = performance.now();
  let best: EdgeTarget | undefined;
  for (let i = 0; i < targets.length; i += 1) {
    const target = targets[(turn + i) % targets.length] as EdgeTarget;
    if (!tried.includes(target) && (best === undefined || isBetter(target, best, now))) best = target;
  }
  return best;
}

function isBetter(target: EdgeTarget, than: EdgeTarget, nowMs: number): boolean {
  const avoided = target.avoidUntilMs > nowMs;
  const otherAvoided = than.avoidUntilMs > nowMs;
  return avoided === otherAvoided ? target.open < than.open : otherAvoided;
}
