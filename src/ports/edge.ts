/**
 * Carries the traffic to applications. It receives the whole route table at once (`apply`) and keeps serving the last one while the
 * control plane is away. Changing one project's route never touches another project's connections.
 */
export interface Edge {
  /** Names the adapter in rows and in the status. */
  readonly kind: "builtin" | "haproxy";
  /** Makes the edge run and serve `routes`, resolves when new requests go by them. Older versions than the last are ignored. */
  apply(routes: RouteTable): Promise<void>;
  /**
   * Replaces all certificates, resolves when new TLS connections get them. Open connections go on. Older versions than the last are ignored.
   * May come before the first `apply`. The edge serves the last table while the control plane is away, and after a restart of its own: it
   * keeps it in a file that only its own user reads.
   */
  applyCertificates(table: CertificateTable): Promise<void>;
  /** Requests and connections now open to each target, by `host:port`; a target without any may be missing. */
  openRequests(): Promise<ReadonlyMap<string, number>>;
  /**
   * What was counted, per project and counter. A counter's counts only grow and are shown for an hour at least after it ended; a crash or a
   * replacement of the edge begins a new counter. What a project got is the sum over all counters.
   */
  measure(): Promise<readonly EdgeUsage[]>;
  /** Where the platform's own requests for an application's page go, which are not counted as its traffic; null while the edge does not run. */
  entrance(): Promise<EdgeEntrance | null>;
  /** Whether the edge answers, where it listens, and the versions of the routes and certificates it serves by. */
  observe(): Promise<EdgeStatus>;
  /** Ends the edge: no new connections, waits up to `graceMs` for open ones. Idempotent. */
  stop(graceMs: number): Promise<void>;
}

export interface RouteTable {
  /** Grows with each change; a table with a smaller number than the last is ignored. */
  readonly version: number;
  readonly routes: readonly Route[];
  /**
   * Where plain requests for `/.well-known/acme-challenge/…` go, whatever their hostname and whether there is a route for it: the control
   * plane. They are never redirected. Null: they are requests like any other.
   */
  readonly challenge: Target | null;
}

export interface Route {
  /** Lower case, without port. */
  readonly hostname: string;
  readonly project_id: string;
  readonly state: RouteState;
  /** Ready replicas. May be empty while `serving`: then 502 with a page that says the application is not running. */
  readonly targets: readonly Target[];
  readonly https: RouteHttps;
  /** Answers over HTTPS carry `Strict-Transport-Security: max-age=31536000`, unless the application sets that field itself. */
  readonly hsts: boolean;
  /**
   * Its target is the control plane: requests carry the headers of `entrance`, which no client knows, so that it believes their forwarding
   * fields. Left out: false.
   */
  readonly is_control?: boolean;
  /** What the page of `maintenance` says instead of its own sentence: one line of plain text. */
  readonly notice?: string;
}

/**
 * What happens to plain HTTP: `redirect` answers every request (but challenges) with 308 to the same URL over HTTPS; `on` and `off` serve it.
 * A TLS connection is accepted for every name that a certificate covers; where that is also a route's hostname, `off` answers as an unknown host.
 */
export type RouteHttps = "off" | "on" | "redirect";

/**
 * `serving` routes; the others answer with a page: nothing deployed yet (404), deleted, suspended or in maintenance (503, no-store). The
 * answers of `maintenance` are not counted: they say nothing about the application.
 */
export type RouteState = "serving" | "empty" | "deleted" | "suspended" | "maintenance";

export interface Target {
  readonly host: string;
  readonly port: number;
}

export interface CertificateTable {
  /** Grows with each change; a table with a smaller number than the last is ignored. */
  readonly version: number;
  readonly certificates: readonly EdgeCertificate[];
}

/** A connection gets the certificate that names its server name exactly, else the wildcard one level above; without one the handshake fails. */
export interface EdgeCertificate {
  /** Lower case; `*.apps.example` covers one further label. No name is in two certificates of a table. */
  readonly names: readonly string[];
  /** The certificate first, then its issuers. */
  readonly chain_pem: string;
  /** Secret. */
  readonly key_pem: string;
}

/** Where the platform's own requests go, and where those over HTTPS (null: HTTPS is switched off); they carry these headers beside their `Host`. The headers stay the same as long as the state folder. */
export interface EdgeEntrance {
  readonly host: string;
  readonly port: number;
  readonly tls_port: number | null;
  readonly headers: Readonly<Record<string, string>>;
}

export interface EdgeUsage {
  /** Identifies the edge that counted, from its start to its end. */
  readonly counter: string;
  readonly project_id: string;
  readonly requests: number;
  /** By first digit of the status: `"2"` … `"5"`. */
  readonly by_class: Readonly<Record<string, number>>;
  /** Of bodies and tunnels; HAProxy counts heads too. */
  readonly bytes_in: number;
  readonly bytes_out: number;
  /** Time from a request's head to the head of its answer. Cumulative counts under the upper bounds of `latencyBucketsMs`; the last one counts all. */
  readonly latency_buckets: readonly number[];
  /** HAProxy estimates it from the buckets. */
  readonly latency_sum_ms: number;
}

/** Upper bounds of the latency histogram in milliseconds; one more bucket, without a bound, follows. */
export const latencyBucketsMs = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000] as const;

export interface EdgeStatus {
  readonly running: boolean;
  /** `host:port` for plain HTTP. */
  readonly listen: string | null;
  /** `host:port` for HTTPS; null when it is switched off. */
  readonly listen_tls: string | null;
  readonly route_version: number;
  readonly certificate_version: number;
  readonly detail: string;
}
