/** What HAProxy is configured with beside the routes. */
export interface HaproxySettings {
  readonly listen_host: string;
  readonly listen_port: number;
  /** Null: no HTTPS. */
  readonly listen_tls_port: number | null;
  /** Where its files and sockets are: relative names in the configuration start here. */
  readonly run_dir: string;
  /** A replica that sends nothing for this long is given up: 504 before its answer, a cut after it began. */
  readonly upstream_timeout_ms: number;
  /** How long a replaced worker keeps its open requests and tunnels. */
  readonly drain_limit_ms: number;
  /**
   * Up to so many requests a second a kept connection to a replica may rest for seconds, until the replica closes it. An application that stood
   * still for longer than it keeps idle connections closes those that rested, requests on their way included: with 66 requests a second and none
   * of them repeated, 1 of 150,000 was lost on a machine on which 30 other processes were ready to run.
   */
  readonly busy_above_per_second: number;
  /** Requests that carry it in `probeHeader` are the platform's own and not counted. */
  readonly probe_key: string;
  /** Addresses and networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed. */
  readonly trusted_proxies: readonly string[];
}

/** Lower case, as HAProxy gives header names. It never reaches an application. */
export const probeHeader = "x-berth-probe";
/** The file of the host map, as configuration and runtime commands name it. */
export const hostMap = "hosts.map";
/** The list of certificates, likewise. */
export const certificateList = "certificates/list";
/** The stick table that counts, keyed by project. */
export const usageTable = "usage";
/** The stick table of what is open to the only replicas of their projects, keyed by `host/port`. */
export const openTable = "open";
/** The backend of all projects with one replica, which the host map names. */
export const singleBackend = "single";
/** The backend of the same projects while each has more than `busy_above_per_second` requests. */
export const busyBackend = "busy";
/** The first letter of a value of the host map: what answers. */
export const kinds = { single: "S", balanced: "B", page: "G" } as const;
/** The backend of challenges; it belongs to no project. */
export const challengeBackend = "challenge";
/** The backend of the edge's own pages. */
export const pagesBackend = "pages";
/** The runtime API of the present worker. */
export const adminSocket = "admin.sock";
/** The runtime API of the master, which reaches every worker. */
export const masterSocket = "master.sock";

/** An IPv6 address stands in brackets before a port. */
export function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
