/** What one host grants git's clients; all together bound its memory and its processes. */
export interface GitLimits {
  /** A pushed pack may not be larger (semantics §10). */
  readonly packBytes: number;
  /** git processes at once, over both transports. */
  readonly processes: number;
  /** Of them for one organization, so that none can keep the others out. */
  readonly processesPerOrganization: number;
  readonly connections: number;
  /** Connections that have not proved a key yet (OpenSSH's MaxStartups). */
  readonly unauthenticated: number;
  /** Of them from one address, so that no stranger can keep the others out. */
  readonly unauthenticatedPerAddress: number;
  readonly handshakeMs: number;
  /** Refused keys per connection. An agent offers all of its keys, one after the other. */
  readonly refusedKeys: number;
  readonly channelsPerConnection: number;
  /** A transfer, or a connection without one, on which nothing moves for this long is ended. */
  readonly idleMs: number;
}

export const defaultGitLimits: GitLimits = {
  packBytes: 256 * 1024 * 1024,
  processes: 64,
  processesPerOrganization: 24,
  connections: 200,
  unauthenticated: 40,
  // Half of all: behind a proxy or an office's router many share one.
  unauthenticatedPerAddress: 20,
  handshakeMs: 20_000,
  refusedKeys: 12,
  channelsPerConnection: 10,
  idleMs: 120_000,
};
