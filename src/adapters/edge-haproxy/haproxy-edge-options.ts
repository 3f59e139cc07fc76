import type { Log } from "../../kit/log.ts";

/** How HAProxy runs as an edge. */
export interface HaproxyEdgeOptions {
  readonly haproxyBin: string;
  readonly listenHost: string;
  readonly listenPort: number;
  /** Null: no HTTPS. */
  readonly listenTlsPort: number | null;
  /** Belongs to the edge alone; made when absent. Two edges never share one. */
  readonly stateDir: string;
  readonly log: Log;
  /** As root: the user that HAProxy runs as; nothing else runs under it. Left out: it runs as the present user. */
  readonly uid?: number;
  /** setpriv(1), with which HAProxy becomes that user. */
  readonly setpriv?: string | null;
  readonly trustedProxies?: readonly string[];
  /** How long a replica may send nothing, before its answer (504) and in its middle. Default 300 s. */
  readonly upstreamTimeoutMs?: number;
  /** How long a replaced worker keeps open requests and WebSockets. Default 1 h. */
  readonly drainLimitMs?: number;
  /** A project with more requests a second is busy: its visitors share kept connections, and none of its requests is repeated. Default 100. */
  readonly busyAbovePerSecond?: number;
  /** Projects with several replicas that fit without a reload at first. Default 64. */
  readonly firstBackends?: number;
}
