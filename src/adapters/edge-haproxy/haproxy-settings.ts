export interface HaproxySettings {
  readonly listen_host: string;
  readonly listen_port: number;
  /** Null disables HTTPS. */
  readonly listen_tls_port: number | null;
  /** The folder of HAProxy's files and sockets; relative names in the configuration start here. */
  readonly run_dir: string;
  /** A replica that sends nothing for this long has timed out: 504 before its response, an aborted connection in the middle of it. */
  readonly upstream_timeout_ms: number;
  /** The most bytes in the body of a request to an application; 0: no limit. */
  readonly max_body_bytes: number;
  /** How long a replaced worker keeps its open requests and tunnels. */
  readonly drain_limit_ms: number;
  /**
   * Up to this many requests a second, a kept connection to a replica may be idle for seconds, until the replica closes it. An application
   * that stalls for longer than it keeps idle connections then closes the idle ones together with requests on their way: with 66 requests a
   * second and none repeated, 1 of 150,000 was lost on a machine with 30 other runnable processes.
   */
  readonly busy_above_per_second: number;
  /** Requests with this value in `probeHeader` come from the platform and are not counted. */
  readonly probe_key: string;
  /** Addresses and networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted. */
  readonly trusted_proxies: readonly string[];
}

/** In lower case, as HAProxy reports header names. It never reaches an application. */
export const probeHeader = "x-berth-probe";
/** The file of the host map, as configuration and runtime commands name it. */
export const hostMap = "hosts.map";
/** The file of the crt-list, likewise. */
export const certificateList = "certificates/list";
/** The stick table of usage counts, keyed by project. */
export const usageTable = "usage";
/** The stick table of open requests to projects' single replicas, keyed by `host/port`. */
export const openTable = "open";
/** The backend of all projects with one replica; the host map names the replica. */
export const singleBackend = "single";
/** The backend of such projects for requests that may be sent twice. */
export const repeatableBackend = "repeatable";
/** The backend of such projects while they have more than `busy_above_per_second` requests a second. */
export const busyBackend = "busy";
/** The backend of requests whose bodies have no stated length: it counts them and passes them on to `loopFrontend`. */
export const countedBackend = "counted";
/** The frontend and the socket at which counted requests arrive again. */
export const loopFrontend = "loop";
export const loopSocket = "loop.sock";
/** The first letter of a host map value: a single replica, a backend, or a page. */
export const kinds = { single: "S", balanced: "B", page: "G" } as const;
/** The backend of ACME challenges; it belongs to no project. */
export const challengeBackend = "challenge";
export const pagesBackend = "pages";
/** The socket of the current worker's runtime API. */
export const adminSocket = "admin.sock";
export const requestRing = "requests";
/** The socket of the master's runtime API, which reaches every worker. */
export const masterSocket = "master.sock";

/** Puts an IPv6 address into brackets, as needed before a port. */
export function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
