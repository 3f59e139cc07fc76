import { UpstreamConnection, type ConnectionOwner, type ConnectionUser } from "./upstream-connection.ts";

// A replica that closes idle connections announces it at best in whole seconds: leave before it does.
const keepAliveMarginMs = 1000;
// Servers without a hint close after 5 s (Node, uvicorn) or 2 s (gunicorn).
const keepAliveDefaultMs = 1900;
const keepAliveMostMs = 60_000;
const avoidAfterRefusalMs = 1000;

/** One replica: its open requests, its kept connections, and whether it lately refused one. */
export class EdgeTarget implements ConnectionOwner {
  readonly host: string;
  readonly port: number;
  readonly key: string;
  /** Requests and tunnels now open to it. */
  open = 0;
  avoidUntilMs = 0;
  /** No route names it any more: connections close as their requests end. */
  retired = false;
  readonly #idle: UpstreamConnection[] = [];
  readonly #all = new Set<UpstreamConnection>();

  constructor(host: string, port: number) {
    this.host = host;
    this.port = port;
    this.key = targetKey(host, port);
  }

  /** Gives `user` a connection: a kept one that was used within `idleAtMostMs`, else a new one. */
  acquire(user: ConnectionUser, idleAtMostMs: number): UpstreamConnection {
    const now = performance.now();
    for (;;) {
      const kept = this.#idle.at(-1);
      if (kept === undefined || now - kept.idleSinceMs > idleAtMostMs) break;
      this.#idle.pop();
      if (kept.usableUntilMs > now && !kept.socket.destroyed) {
        kept.reuse(user);
        return kept;
      }
      kept.destroy();
    }
    const opened = new UpstreamConnection(this, user);
    this.#all.add(opened);
    return opened;
  }

  refused(): void {
    this.avoidUntilMs = performance.now() + avoidAfterRefusalMs;
  }

  retire(): void {
    this.retired = true;
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }

  /** Closes kept connections that the replica may close any moment. */
  sweep(nowMs: number): void {
    for (const connection of this.#idle.filter((each) => each.usableUntilMs <= nowMs)) connection.destroy();
  }

  freed(connection: UpstreamConnection): void {
    const keepMs = (connection.keepAliveHintMs ?? keepAliveDefaultMs + keepAliveMarginMs) - keepAliveMarginMs;
    if (this.retired || keepMs <= 0) return connection.destroy();
    connection.idleSinceMs = performance.now();
    connection.usableUntilMs = connection.idleSinceMs + Math.min(keepMs, keepAliveMostMs);
    this.#idle.push(connection);
  }

  gone(connection: UpstreamConnection): void {
    if (!this.#all.delete(connection)) return;
    const at = this.#idle.indexOf(connection);
    if (at !== -1) this.#idle.splice(at, 1);
  }
}

/** How a target is named in tables and counts. */
export function targetKey(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Picks the replica with the fewest open requests, in turn among equals; those that lately refused only when no other is left. */
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
