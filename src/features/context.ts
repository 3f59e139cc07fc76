import type { ApiLimits } from "../contract/limits.ts";
import type { Answer } from "../contract/client.ts";
import type { Rights } from "../contract/access.ts";
import type { Body, Params, Query, Result, RouteName, RouteNamed, Routes } from "../contract/routes.ts";
import type { Log } from "../kit/log.ts";
import type { Builder } from "../ports/builder.ts";
import type { Clock } from "../ports/clock.ts";
import type { DataDisk } from "../ports/data-disk.ts";
import type { Dns } from "../ports/dns.ts";
import type { LogStore } from "../ports/log-store.ts";
import type { MailTo, Notifier } from "../ports/notifier.ts";
import type { OutgoingHttp } from "../ports/outgoing-http.ts";
import type { PostgresHost } from "../ports/postgres-host.ts";
import type { Releases } from "../ports/releases.ts";
import type { Repositories } from "../ports/repositories.ts";
import type { Storages } from "../ports/storage.ts";
import type { TenantDatabase } from "../ports/tenant-database.ts";
import type { Runtime, WorkloadLimits } from "../ports/runtime.ts";
import type { Db, Tx } from "../store/database.ts";
import type { Vault } from "../store/vault.ts";
import type { Wakeups } from "../store/wakeups.ts";
import type { DiskLimits } from "./disk/rules.ts";
import type { DomainSettings } from "./domains/settings.ts";
import type { PreviewSettings } from "./previews/rules.ts";
import type { ProjectKey, ProjectRow } from "./projects/queries.ts";
import type { RefusalText } from "./refused.ts";
import type { Terminals } from "./runs/terminals.ts";
import type { Tunnel } from "./tunnel.ts";

export { Refused, type RefusalText } from "./refused.ts";
export type { Tunnel } from "./tunnel.ts";

/** The caller of a request: one token of one organization. */
export interface Caller extends Rights {
  readonly org_id: string;
  readonly org_slug: string;
  readonly org_name: string;
  readonly token_id: string;
  readonly token_name: string;
  readonly approval_mode: boolean;
  /** On whose behalf it acts, in a session or by a connected program; null for a token that is nobody's own. */
  readonly person_id: string | null;
  /** Null also for a person's program: it must not act as the person themselves. */
  readonly session_id: string | null;
  /** When the session's person last proved to be there; RFC 3339. */
  readonly fresh_at: string | null;
}

/** The dependencies of handlers, and the addresses under which users reach the platform. */
export interface HandlerPlatform {
  readonly db: Db;
  readonly vault: Vault;
  readonly wakeups: Wakeups;
  readonly clock: Clock;
  readonly ports: {
    readonly runtime: Runtime;
    readonly builder: Pick<Builder, "isShortOfSpace" | "plan" | "images" | "tryLogin">;
    readonly dataDisk: DataDisk;
    readonly postgresHost: PostgresHost;
    readonly repositories: Repositories;
    readonly logStore: LogStore;
    readonly tenantDatabase: TenantDatabase;
    readonly dns: Dns;
    readonly notifiers: readonly Notifier[];
    readonly mailTo: MailTo;
    readonly storages: Storages;
    readonly outgoingHttp: OutgoingHttp;
  };
  readonly addresses: Addresses;
  readonly settings: {
    readonly disk: DiskLimits;
    readonly workloadLimits: Pick<WorkloadLimits, "memoryBytes">;
    readonly backups: {
      /** How many manual backups of each project are kept. */
      readonly retention: { readonly manual: number };
      /** For how many days any moment of a database can be restored; 0: databases have only their backups. */
      readonly archiveDays: number;
    };
    /** For how long a branch lives by default, and how many the platform has. */
    readonly branches: { readonly minutes: number; readonly perPlatform: number };
    /** Registries in private networks that builds may reach, as `host[:port]`. */
    readonly privateRegistries: readonly string[];
    /** Private networks that organizations' webhooks, followed repositories and identity providers may be in. */
    readonly outgoingNetworks: readonly string[];
    /** Days after its deletion until a project is purged; 0: never automatically. */
    readonly purgeDays: number;
    readonly previews: PreviewSettings;
  };
  readonly terminals: Terminals;
  readonly releases: Releases;
  readonly domains: DomainSettings;
  readonly version: string;
  /** The fingerprint of the SSH host key, in the form that SSH clients show. */
  readonly sshHostKey: string;
  /** Returns whether this machine may run an organization's code. */
  readonly admitsCode: (organization: { readonly slug: string }) => boolean;
  /** This installation's limits where they differ from the contract's. */
  readonly limits?: Partial<ApiLimits>;
}

/** The addresses under which users reach the platform, from the configuration. */
export interface Addresses {
  readonly appsDomain: string;
  /** The control plane's URL, such as `http://localhost:4000`, without a trailing slash. */
  readonly controlUrl: string;
  /** Returns the URL of a hostname, such as `http://demo.localhost:8080`. */
  readonly appUrl: (hostname: string) => string;
  readonly gitSsh: (orgSlug: string, projectSlug: string) => string;
  readonly gitHttp: (orgSlug: string, projectSlug: string) => string;
}

/** The error codes that a route may return: its own and the common ones. */
export type CodeOf<N extends RouteName> =
  | RouteNamed<N>["errors"][number]
  | (RouteNamed<N>["living"] extends true ? "project_deleted" : never)
  | "invalid_request"
  | "not_found"
  | "unavailable";

/** The project, not deleted, that the request's path names. */
export interface NamedProject extends ProjectRow {
  readonly key: ProjectKey;
}

/** Everything a handler works with. `tx` is the request's transaction; in requests that only read it is the database itself. */
export interface Context<N extends RouteName> {
  readonly tx: RouteNamed<N>["method"] extends "GET" ? Db : Tx;
  readonly caller: Caller;
  /** Only for routes with `living: true`. Belongs to the caller's organization, unless the path of an operator's route names another one. */
  readonly project: RouteNamed<N>["living"] extends true ? NamedProject : never;
  readonly platform: HandlerPlatform;
  readonly now: Date;
  readonly log: Log;
  /** For handlers that wait or stream: aborts on a disconnect, a stop or an invalid token; its reason is the refusal to respond with. */
  readonly signal: AbortSignal;
  /** The id of the last event that the client received before its stream broke. */
  readonly lastEventId: string | undefined;
  /** Reads another GET route as this caller, with its checks and refusals. `query` is as a client sends it; its defaults apply. */
  readonly read: <R extends RouteName>(row: R, input: ReadInput) => Promise<Answer<R>>;
  /** Refuses the request with this code and rolls the transaction back. */
  readonly fail: (code: CodeOf<N>, more?: RefusalText) => never;
  /** Chooses another of the route's success statuses. */
  readonly answer: (status: RouteNamed<N>["success"][number]) => void;
  /** Responds to a GET with a stream of events instead of a result, until they end or `signal` aborts. */
  readonly stream: (events: AsyncIterable<ServerEvent>) => never;
  /** Whether the request asks for a tunnel. Only for routes with `upgrades`. */
  readonly isUpgrade: boolean;
  /** Responds to an upgrade with a tunnel, which `work` serves until it resolves or `signal` aborts. */
  readonly tunnel: (work: (tunnel: Tunnel) => Promise<void>) => never;
  /** Adds details to the activity entry, beyond the route's label. Variable names are allowed, their values never. */
  readonly note: (activity: ActivityNote) => void;
}

export interface ReadInput {
  readonly params: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
}

/** One event of a `text/event-stream`; `data` is sent as JSON. A client that reconnects sends the last `id` it received. */
export interface ServerEvent {
  readonly id?: string;
  readonly event?: string;
  readonly data: unknown;
}

export interface ActivityNote {
  /** Defaults to `ctx.project`. */
  readonly project_id?: string;
  readonly target?: string;
  /** Replaces the route's label. */
  readonly action?: string;
  /** The id of the changed object, for paths whose name could later mean another object; approvals are bound to this id. */
  readonly resource?: string;
  readonly detail?: Readonly<Record<string, unknown>>;
  /** Nothing changes, so no activity is recorded. */
  readonly silent?: boolean;
  /** The request of a row with `approval` loses nothing, so it needs none. */
  readonly losesNothing?: boolean;
  /** The outcome decides whether something changes, and records the activity itself. */
  readonly recordedLater?: boolean;
}

export interface Input<N extends RouteName> {
  readonly params: Params<N>;
  readonly query: Query<N>;
  readonly body: Body<N>;
}

/**
 * The result of a handler that waits: the transaction is committed, then `outcome` is awaited without a transaction. The signal aborts when
 * the platform stops or the time limit is reached, not when the client disconnects; its reason is the refusal to respond with.
 */
export interface Waiting<T> {
  readonly outcome: (signal: AbortSignal) => Promise<T>;
  /** Checks external state, read-only, and throws the outcome's refusal. Called without a transaction, before a human is asked. */
  readonly look?: () => Promise<void>;
  /** `outcome` changes something outside the database, so the activity is recorded when it is done. */
  readonly changesLate?: true;
}

export type Handler<N extends RouteName> = (
  ctx: Context<N>,
  input: Input<N>,
) => Promise<RouteNamed<N>["waits"] extends true ? Waiting<Result<N>> : Result<N>>;

type NounOf<N extends RouteName> = N extends `${infer Noun}.${string}` ? Noun : never;
export type Noun = NounOf<RouteName>;

/** All handlers of a noun, one function per route; a missing one is a compile error. */
export type Handlers<N extends Noun> = {
  readonly [R in Routes as R["name"] extends `${N}.${infer Verb}` ? Verb : never]: Handler<R["name"]>;
};
