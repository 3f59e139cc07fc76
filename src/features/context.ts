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
import type { PostgresHost } from "../ports/postgres-host.ts";
import type { Repositories } from "../ports/repositories.ts";
import type { Storages } from "../ports/storage.ts";
import type { TenantDatabase } from "../ports/tenant-database.ts";
import type { Runtime } from "../ports/runtime.ts";
import type { Db, Tx } from "../store/database.ts";
import type { Vault } from "../store/vault.ts";
import type { Wakeups } from "../store/wakeups.ts";
import type { DiskLimits } from "./disk/rules.ts";
import type { DomainSettings } from "./domains/settings.ts";
import type { ProjectKey, ProjectRow } from "./projects/queries.ts";
import type { RefusalText } from "./refused.ts";
import type { Terminals } from "./runs/terminals.ts";
import type { Tunnel } from "./tunnel.ts";

export { Refused, type RefusalText } from "./refused.ts";
export type { Tunnel } from "./tunnel.ts";

/** Who calls: one token of one organization. */
export interface Caller extends Rights {
  readonly org_id: string;
  readonly org_slug: string;
  readonly org_name: string;
  readonly token_id: string;
  readonly token_name: string;
  readonly approval_mode: boolean;
}

/** What handlers may use of the world, and how the platform is called from outside. */
export interface HandlerPlatform {
  readonly db: Db;
  readonly vault: Vault;
  readonly wakeups: Wakeups;
  readonly clock: Clock;
  readonly ports: {
    readonly runtime: Runtime;
    readonly builder: Pick<Builder, "isShortOfSpace" | "plan" | "images">;
    readonly dataDisk: DataDisk;
    readonly postgresHost: PostgresHost;
    readonly repositories: Repositories;
    readonly logStore: LogStore;
    readonly tenantDatabase: TenantDatabase;
    readonly dns: Dns;
    readonly notifiers: readonly Notifier[];
    readonly mailTo: MailTo;
    readonly storages: Storages;
  };
  readonly addresses: Addresses;
  readonly settings: {
    readonly disk: DiskLimits;
    /** Registries in private networks that builds may reach, as `host[:port]`. */
    readonly privateRegistries: readonly string[];
  };
  readonly terminals: Terminals;
  readonly domains: DomainSettings;
  readonly version: string;
  /** The fingerprint of the SSH host key, as a client shows it. */
  readonly sshHostKey: string;
  /** Whether this machine may run the code of an organization. */
  readonly admitsCode: (organization: { readonly slug: string }) => boolean;
  /** What this installation limits otherwise than the contract says. */
  readonly limits?: Partial<ApiLimits>;
}

/** How users reach the platform; made from the configuration. */
export interface Addresses {
  readonly appsDomain: string;
  /** The control plane, `http://localhost:4000`, without a slash at the end. */
  readonly controlUrl: string;
  /** `http://demo.localhost:8080` for a hostname. */
  readonly appUrl: (hostname: string) => string;
  readonly gitSsh: (orgSlug: string, projectSlug: string) => string;
  readonly gitHttp: (orgSlug: string, projectSlug: string) => string;
}

/** The error codes that a route may answer: its own and the common ones. */
export type CodeOf<N extends RouteName> =
  | RouteNamed<N>["errors"][number]
  | (RouteNamed<N>["living"] extends true ? "project_deleted" : never)
  | "invalid_request"
  | "not_found"
  | "unavailable";

/** The living project that a path names. */
export interface NamedProject extends ProjectRow {
  readonly key: ProjectKey;
}

/** Everything a handler works with. `tx` is the one transaction of a request that changes something; what only reads has none. */
export interface Context<N extends RouteName> {
  readonly tx: RouteNamed<N>["method"] extends "GET" ? Db : Tx;
  readonly caller: Caller;
  /** Of rows that say `living: true`. Its organization is the caller's, unless the path of an operator's row names another. */
  readonly project: RouteNamed<N>["living"] extends true ? NamedProject : never;
  readonly platform: HandlerPlatform;
  readonly now: Date;
  readonly log: Log;
  /**
   * For handlers that wait or stream: aborts when the client leaves, the platform stops, or the caller's token no longer counts. Its reason is
   * then the refusal to answer with.
   */
  readonly signal: AbortSignal;
  /** The id of the last event that a client got before it lost its stream. */
  readonly lastEventId: string | undefined;
  /**
   * What another row shows this caller. Asks for that row's rights, and throws its refusals. Only of rows that read. `query` is as a client
   * sends it: the row's own defaults fill the rest in.
   */
  readonly read: <R extends RouteName>(row: R, input: ReadInput) => Promise<Answer<R>>;
  /** Ends the request with this refusal; the transaction is rolled back. */
  readonly fail: (code: CodeOf<N>, more?: RefusalText) => never;
  /** Chooses another of the row's success statuses. */
  readonly answer: (status: RouteNamed<N>["success"][number]) => void;
  /** Answers a GET with a stream of events instead of a result, until they end or `signal` aborts. */
  readonly stream: (events: AsyncIterable<ServerEvent>) => never;
  /** The request wants a tunnel. Only of rows that say `upgrades`. */
  readonly isUpgrade: boolean;
  /** Answers an upgrade with a tunnel, which `work` serves until it resolves or `signal` aborts. */
  readonly tunnel: (work: (tunnel: Tunnel) => Promise<void>) => never;
  /** What the activity row says beyond the row's label. Keys, never values. */
  readonly note: (activity: ActivityNote) => void;
}

export interface ReadInput {
  readonly params: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
}

/** One event of a stream, as `text/event-stream` has it; `data` goes out as JSON. A client that comes back names the last `id` it got. */
export interface ServerEvent {
  readonly id?: string;
  readonly event?: string;
  readonly data: unknown;
}

export interface ActivityNote {
  /** `ctx.project` if left out. */
  readonly project_id?: string;
  readonly target?: string;
  /** Instead of the row's label. */
  readonly action?: string;
  /** The id of what is changed, where the path names it by a word that could come to mean another; approvals are bound to it. */
  readonly resource?: string;
  readonly detail?: Readonly<Record<string, unknown>>;
  /** Nothing changes: write no row. */
  readonly silent?: boolean;
  /** Only the outcome decides whether something changes, and records it itself. */
  readonly recordedLater?: boolean;
}

/** A parsed request. */
export interface Input<N extends RouteName> {
  readonly params: Params<N>;
  readonly query: Query<N>;
  readonly body: Body<N>;
}

/**
 * What a handler that waits returns: the transaction is committed, then `outcome` is awaited, with no transaction open. The signal aborts
 * when the platform stops or the time for any outcome is over, not when the client leaves; its reason is then the refusal to answer with.
 */
export interface Waiting<T> {
  readonly outcome: (signal: AbortSignal) => Promise<T>;
  /**
   * Looks into the world, without changing it, for what would refuse the request there, and throws that refusal. Called with no transaction
   * open, before a human is asked and in a dryRun.
   */
  readonly look?: () => Promise<void>;
  /** The change is made by `outcome`, in the world: the activity row is written when it is done. */
  readonly changesLate?: true;
}

export type Handler<N extends RouteName> = (
  ctx: Context<N>,
  input: Input<N>,
) => Promise<RouteNamed<N>["waits"] extends true ? Waiting<Result<N>> : Result<N>>;

type NounOf<N extends RouteName> = N extends `${infer Noun}.${string}` ? Noun : never;
export type Noun = NounOf<RouteName>;

/** All handlers of a noun: one function a row; a missing one does not compile. */
export type Handlers<N extends Noun> = {
  readonly [R in Routes as R["name"] extends `${N}.${infer Verb}` ? Verb : never]: Handler<R["name"]>;
};
