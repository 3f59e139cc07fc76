import type { Log } from "../../kit/log.ts";

export interface HaproxyEdgeOptions {
  readonly haproxyBin: string;
  readonly listenHost: string;
  readonly listenPort: number;
  /** Null disables HTTPS. */
  readonly listenTlsPort: number | null;
  /** A folder for this edge alone, created if missing. Two edges must not share one. */
  readonly stateDir: string;
  readonly log: Log;
  /** Called before each start of HAProxy, when something else of the data folder may still use the ports. */
  readonly freePorts?: () => Promise<void>;
  /** For root: the user that HAProxy runs as; nothing else may run as that user. If missing, it runs as the current user. */
  readonly uid?: number;
  /** The path of setpriv(1), which switches HAProxy to that user. */
  readonly setpriv?: string | null;
  /** The most bytes in the body of a request to an application; 0, the default: no limit. */
  readonly maxBodyBytes?: number;
  readonly trustedProxies?: readonly string[];
  /** How long a replica may send nothing, before its response (then 504) or in the middle of it. Default 300 s. */
  readonly upstreamTimeoutMs?: number;
  /** How long a replaced worker keeps open requests and WebSockets. Default 1 h. */
  readonly drainLimitMs?: number;
  /** A project with more requests a second is busy: its visitors share kept connections, and its requests are not repeated. Default 100. */
  readonly busyAbovePerSecond?: number;
  /** The number of backends, one per project with several replicas, that HAProxy starts with; more need a reload. Default 64. */
  readonly firstBackends?: number;
}
