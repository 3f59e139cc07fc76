/**
 * Routes traffic to applications. `apply` hands it the whole route table, and it keeps serving the last table while the control plane is
 * down. Changing one project's route never affects another project's connections.
 */
export interface Edge {
  /** Identifies the adapter in database rows and in the status. */
  readonly kind: "haproxy";
  /** Starts the edge if necessary and serves `routes`; resolves when new requests follow them. A table older than the last one is ignored. */
  apply(routes: RouteTable): Promise<void>;
  /**
   * Replaces all certificates; resolves when new TLS connections use them. Open connections continue. A table older than the last one is
   * ignored. May be called before the first `apply`. The edge stores the table in a file that only its own user can read, so it survives a
   * restart of the edge and an absent control plane.
   */
  applyCertificates(table: CertificateTable): Promise<void>;
  /** Returns the number of open requests and connections per target, keyed by `host:port`. Targets without any may be missing. */
  openRequests(): Promise<ReadonlyMap<string, number>>;
  /**
   * Returns usage per project and counter. Values of a counter only grow, and stay readable for at least an hour after the counter ends; a
   * crash or a replacement of the edge starts a new counter. A project's total is the sum over all counters.
   */
  measure(): Promise<readonly EdgeUsage[]>;
  /**
   * Calls `wake` with a project's id when one of its routes that are `asleep` gets a request. The edge holds such requests until the route
   * serves, and answers them with a page after 30 s, or when `wake` has settled and the route is still asleep.
   */
  wakeBy(wake: (projectId: string) => Promise<void>): Promise<void>;
  /**
   * Calls `note` about once a second with the requests to projects that have ended since. Of a project with more than about 20 requests a
   * second, a random part is reported. Requests that end while nothing listens may be lost. The last `note` counts.
   */
  reportRequests(note: (requests: readonly EdgeRequest[]) => void): Promise<void>;
  /** Returns where the platform requests applications' pages without being counted as traffic. Null while the edge is not running. */
  entrance(): Promise<EdgeEntrance | null>;
  /** Returns whether the edge responds, where it listens, and which versions of routes and certificates it serves. */
  observe(): Promise<EdgeStatus>;
  /** Stops the edge: refuses new connections and waits up to `graceMs` for open ones. Idempotent. */
  stop(graceMs: number): Promise<void>;
}

export interface RouteTable {
  /** Grows with each change. A table with a lower version than the last one is ignored. */
  readonly version: number;
  readonly routes: readonly Route[];
  /** The control plane's address for plain ACME challenges of any hostname, which are never redirected. Null: nothing special. */
  readonly challenge: Target | null;
}

export interface Route {
  /** Lower case, without port. */
  readonly hostname: string;
  readonly project_id: string;
  readonly state: RouteState;
  /** Ready replicas. May be empty while `serving`: clients then get 503 with a page saying that the application is not running. */
  readonly targets: readonly Target[];
  readonly https: RouteHttps;
  /** Adds `Strict-Transport-Security: max-age=31536000` to HTTPS responses, unless the application sets that header itself. */
  readonly hsts: boolean;
  /** The target is the control plane: the edge adds the headers of `entrance`, so that its forwarding headers are trusted. Default false. */
  readonly is_control?: boolean;
  /** Replaces the sentence on the `maintenance` page: one line of plain text. */
  readonly notice?: string;
  /**
   * In every state, requests get 308 to another hostname with the same path and query, over HTTPS if `https` is true, else over plain HTTP.
   * Clients may remember the redirect for an hour. Plain requests are redirected there directly, whatever `https` of the route says.
   */
  readonly redirect_to?: { readonly hostname: string; readonly https: boolean };
}

/**
 * How plain HTTP is handled: `redirect` answers every request except challenges with 308 to the same URL over HTTPS; `on` and `off` serve
 * it. A TLS connection is accepted for every name that a certificate covers; when that name is also a route's hostname, `off` treats it as
 * an unknown host.
 */
export type RouteHttps = "off" | "on" | "redirect";

/**
 * `serving` forwards requests. All other states answer with a page: 404 when nothing is deployed yet; 503 with `no-store` when deleted,
 * suspended, asleep or in maintenance. `maintenance` responses are not counted, because they say nothing about the application.
 */
export type RouteState = "serving" | "empty" | "deleted" | "suspended" | "maintenance" | "asleep";

export interface Target {
  readonly host: string;
  readonly port: number;
}

export interface CertificateTable {
  /** Grows with each change. A table with a lower version than the last one is ignored. */
  readonly version: number;
  readonly certificates: readonly EdgeCertificate[];
}

/** A connection gets the certificate that lists its server name exactly, else the wildcard one level above. Without either, the handshake fails. */
export interface EdgeCertificate {
  /** Lower case; `*.apps.example` covers one label. No name appears in two certificates of a table. */
  readonly names: readonly string[];
  /** The certificate, followed by its issuers. */
  readonly chain_pem: string;
  /** Secret. */
  readonly key_pem: string;
}

/** Where the platform sends its own requests, over HTTP and HTTPS (null when off), with these headers, which stay as the state folder. */
export interface EdgeEntrance {
  readonly host: string;
  readonly port: number;
  readonly tls_port: number | null;
  readonly headers: Readonly<Record<string, string>>;
}

export interface EdgeUsage {
  /** Identifies one run of an edge, from its start to its end. */
  readonly counter: string;
  readonly project_id: string;
  readonly requests: number;
  /** By first digit of the status: `"2"` … `"5"`. */
  readonly by_class: Readonly<Record<string, number>>;
  /** Bytes of requests with their heads, and of tunnels. */
  readonly bytes_in: number;
  readonly bytes_out: number;
  /** Time from a request's head to its response's head, as cumulative counts per bound in `latencyBucketsMs`; the last counts all. */
  readonly latency_buckets: readonly number[];
  /** Estimated from the buckets. */
  readonly latency_sum_ms: number;
}

export interface EdgeRequest {
  readonly project_id: string;
  /** When its head arrived: RFC 3339 in UTC with milliseconds. */
  readonly at: string;
  readonly method: string;
  /** Without the query string; at most about 1,000 characters. */
  readonly path: string;
  readonly status: number;
  /** Time from the request's head to the response's head. */
  readonly ms: number;
  /** Bytes of the response with its head. */
  readonly bytes: number;
  /** The replica's `host:port`; null if the edge itself answered. */
  readonly target: string | null;
  /** As the application received it; null if the request did not get that far. */
  readonly request_id: string | null;
  /** For how many requests of its project this one stands: 1 if all are reported. */
  readonly weight: number;
}

/** Upper bounds of the latency histogram in milliseconds. One more bucket, unbounded, follows. */
export const latencyBucketsMs = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000] as const;

export interface EdgeStatus {
  readonly running: boolean;
  /** `host:port` for plain HTTP. */
  readonly listen: string | null;
  /** `host:port` for HTTPS. Null when HTTPS is off. */
  readonly listen_tls: string | null;
  readonly route_version: number;
  readonly certificate_version: number;
  readonly detail: string;
}
