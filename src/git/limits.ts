/** Limits of one host for git's clients; together they bound its memory and number of processes. */
export interface GitLimits {
  /** Largest size of a pushed pack (semantics §10). */
  readonly packBytes: number;
  /** git processes at the same time, over both transports. */
  readonly processes: number;
  /** Of these, at most so many for one organization, so that none can block the others. */
  readonly processesPerOrganization: number;
  readonly connections: number;
  /** Connections that have not authenticated yet (OpenSSH's MaxStartups). */
  readonly unauthenticated: number;
  /** Of these, at most so many from one address, so that no stranger can block others. */
  readonly unauthenticatedPerAddress: number;
  readonly handshakeMs: number;
  /** Refused keys per connection. An SSH agent offers all its keys in turn. */
  readonly refusedKeys: number;
  readonly channelsPerConnection: number;
  /** A transfer, or a connection without one, is closed after this long without data. */
  readonly idleMs: number;
}

export const defaultGitLimits: GitLimits = {
  packBytes: 256 * 1024 * 1024,
  processes: 64,
  processesPerOrganization: 24,
  connections: 200,
  unauthenticated: 40,
  // Half of `unauthenticated`: many users share one address behind a proxy or an office's router.
  unauthenticatedPerAddress: 20,
  handshakeMs: 20_000,
  refusedKeys: 12,
  channelsPerConnection: 10,
  idleMs: 120_000,
};
