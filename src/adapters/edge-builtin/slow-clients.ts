/** A request or tunnel whose client may be slow to read. */
export interface ClientOutput {
  /** Bytes that wait for the client. */
  readonly waitingBytes: number;
  /** Since when the client has read nothing; undefined while it reads. */
  readonly blockedSinceMs: number | undefined;
  /** Closes the client's connection. */
  cut(): void;
}

const maxBlockedMs = 60_000;
// Of all clients together. What the kernel holds for them comes on top and is its own to bound.
const maxWaitingBytes = 64 * 1024 * 1024;

/** Cuts clients that have read nothing for long, and the longest of them sooner when too much memory waits for clients. */
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
