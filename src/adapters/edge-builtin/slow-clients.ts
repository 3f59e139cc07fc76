/** A request or tunnel whose client may read slowly. */
export interface ClientOutput {
  /** The number of bytes that wait for the client. */
  readonly waitingBytes: number;
  /** The time since which the client has read nothing; undefined while it reads. */
  readonly blockedSinceMs: number | undefined;
  /** Closes the client's connection. */
  cut(): void;
}

const maxBlockedMs = 60_000;
// For all clients together. The kernel's socket buffers come on top, and the kernel limits those itself.
const maxWaitingBytes = 64 * 1024 * 1024;

/**
 * Closes connections of clients that have read nothing for long, and, when too much memory waits for clients, of the longest blocked ones
 * sooner.
 */
export function cutSlowClients(all: Iterable<ClientOutput>, nowMs: number): void {
  let waitingBytes = 0;
  const blocked: { output: ClientOutput; sinceMs: number }[] = [];
  for (const output of all) {
    waitingBytes += output.waitingBytes;
    if (output.blockedSinceMs !== undefined) blocked.push({ output, sinceMs: output.blockedSinceMs });
  }
  for (const { output, sinceMs } of blocked.sort((a, b) => a.sinceMs - b.sinceMs)) {
    if (nowMs - sinceMs <= maxBlockedMs && waitingBytes <= maxWaitingBytes) return;
    waitingBytes -= output.waitingBytes;
    output.cut();
  }
}
