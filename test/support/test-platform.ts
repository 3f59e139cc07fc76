import { after } from "node:test";
import type { Scope } from "../../src/contract/access.ts";
import { scopes } from "../../src/contract/access.ts";
import type { HandlerPlatform } from "../../src/features/context.ts";
import { insertToken } from "../../src/features/tokens/queries.ts";
import { hashOf, newTokenText, prefixOf } from "../../src/features/tokens/rules.ts";
import { createHttpServer, type HttpOptions } from "../../src/http/server.ts";
import { createTerminals } from "../../src/features/runs/runs.ts";
import { newId } from "../../src/kit/ids.ts";
import { silentLog } from "../../src/kit/log.ts";
import type { DomainSettings } from "../../src/features/domains/domains.ts";
import type { DataDisk } from "../../src/ports/data-disk.ts";
import { systemClock } from "../../src/ports/clock.ts";
import type { Db } from "../../src/store/database.ts";
import { openWakeups } from "../../src/store/wakeups.ts";
import { testDatabase, type TestDatabase } from "./database.ts";
import {
  builderDouble,
  dnsDouble,
  logStoreDouble,
  postgresHostDouble,
  repositoriesDouble,
  runtimeDouble,
  tenantDatabaseDouble,
  storagesDouble,
} from "./port-doubles.ts";

/** The API on a real database and a real TCP port, with doubles for all ports that the test does not provide. */
export interface TestApi {
  readonly database: TestDatabase;
  readonly platform: HandlerPlatform;
  readonly baseUrl: string;
  readonly port: number;
  /** Calls the API, reads the body and parses it when it is JSON. */
  call(method: string, path: string, options?: CallOptions): Promise<Called>;
  close(): Promise<void>;
}

export interface CallOptions {
  readonly token?: string | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Called {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // Each test asserts the shape that it expects.
  readonly body: Record<string, unknown>;
}

export interface TestApiOptions {
  readonly ports?: Partial<HandlerPlatform["ports"]>;
  readonly clock?: HandlerPlatform["clock"];
  readonly http?: Partial<
    Pick<HttpOptions, "checks" | "mounts" | "limits" | "log" | "dashboard" | "edgeHeaders" | "tunnels">
  >;
}

/** Starts the API. Call `close` in `after`. */
export async function testApi(options: TestApiOptions = {}): Promise<TestApi> {
  const database = await testDatabase();
  const made = await createPlatform(database, options.ports ?? {});
  const platform = { ...made, clock: options.clock ?? systemClock };
  const limits = { ...unlimited, ...options.http?.limits };
  const server = createHttpServer({ platform, log: silentLog, checks: [], ...options.http, limits });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  const baseUrl = `http://127.0.0.1:${port}`;
  return {
    database,
    platform,
    baseUrl,
    port,
    call: (method, path, given = {}) => call(`${baseUrl}${path}`, method, given),
    async close() {
      await server.close();
      await platform.wakeups.close();
      await database.drop();
    },
  };
}

/** Starts the API for the tests of a file, and closes it after them. */
export async function sharedApi(options: TestApiOptions = {}): Promise<TestApi> {
  let api: TestApi | undefined;
  after(() => api?.close());
  return (api = await testApi(options));
}

// Tests send many requests in a short time; tests of the rate limits set their own.
const unlimited = { readsPerMinute: 1e9, writesPerMinute: 1e9, refusedPerMinute: 1e9 };

async function createPlatform(
  database: TestDatabase,
  ports: Partial<HandlerPlatform["ports"]>,
): Promise<HandlerPlatform> {
  return {
    db: database.db,
    vault: database.vault,
    wakeups: await openWakeups({ connection: database.connection, log: silentLog }),
    clock: systemClock,
    ports: {
      runtime: runtimeDouble(),
      dataDisk: emptyDisk,
      postgresHost: postgresHostDouble(),
      repositories: repositoriesDouble(),
      builder: builderDouble(),
      logStore: logStoreDouble(),
      tenantDatabase: tenantDatabaseDouble(),
      dns: dnsDouble(),
      notifiers: [],
      mailTo: null,
      storages: storagesDouble(),
      outgoingHttp: { send: async () => ({ outcome: "failed", reason: "not in this test" }) },
      ...ports,
    },
    domains: testDomains,
    settings: {
      disk: testDiskLimits,
      workloadLimits: { memoryBytes: 512 * 1024 * 1024 },
      backups: { retention: { manual: 20 }, archiveDays: 7 },
      branches: { minutes: 1440, perPlatform: 50 },
      outgoingNetworks: [],
      privateRegistries: ["registry.internal:5000"],
      purgeDays: 30,
      previews: { hours: 72, perProject: 5 },
    },
    addresses: {
      appsDomain: "apps.test",
      controlUrl: "http://berth.test",
      appUrl: (hostname) => `http://${hostname}:8080`,
      gitSsh: (org, slug) => `ssh://git@git.test:2222/${org}/${slug}.git`,
      gitHttp: (org, slug) => `http://git.test/git/${org}/${slug}.git`,
    },
    version: "0.0.0-test",
    sshHostKey: "SHA256:test",
    admitsCode: () => true,
    terminals: createTerminals(),
    releases: noReleases,
  };
}

/** Disk limits of a project in tests. */
export const testDiskLimits = { storage_bytes: 1e9, database_bytes: 1e9, images_bytes: 1e9, backups_bytes: 1e9 };

/** The releases of a platform that runs from a clone. */
const noReleases: HandlerPlatform["releases"] = {
  newer: () => null,
  report: async () => ({ installed: [], unfinalized: [], upgrade: null }),
  upgrade: async () => "clone",
  finalize: async () => [],
};

/** A disk with enough free space. */
export const emptyDisk: DataDisk = {
  observe: async () => ({ total_bytes: 1e12, available_bytes: 1e12, is_low: false, is_short: false, is_full: false }),
  keepReserve: async () => "kept",
  probeWrite: async () => {},
};

/** The addresses to which users' hostnames must resolve in tests. */
export const testDomains: DomainSettings = {
  appsDomain: "apps.test",
  controlHost: "berth.test",
  publicAddresses: ["192.0.2.1", "2001:db8::1"],
  isPublic: true,
  graceMs: 3_600_000,
  ordersCertificates: false,
  servesHttps: () => false,
};

async function call(url: string, method: string, { token, body, headers }: CallOptions): Promise<Called> {
  const response = await fetch(url, {
    method,
    redirect: "manual",
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined
      ? {}
      : { body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true && text !== "";
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: isJson ? (JSON.parse(text) as Record<string, unknown>) : {},
  };
}

/** An organization with a token of each kind. */
export interface TestOrganization {
  readonly id: string;
  readonly slug: string;
  readonly owner: string;
  readonly member: string;
  readonly operator: string;
}

/** Inserts an organization directly into the database, with its tokens. */
export async function testOrganization(
  db: Db,
  slug: string,
  options: { readonly maxProjects?: number } = {},
): Promise<TestOrganization> {
  const id = newId("org");
  const is_first = (await db.selectFrom("organization").select("id").limit(1).executeTakeFirst()) === undefined;
  await db
    .insertInto("organization")
    .values({ id, slug, name: slug, max_projects: options.maxProjects ?? 10, is_first })
    .execute();
  const owner = await testToken(db, id, { role: "owner" });
  const member = await testToken(db, id, {});
  const operator = await testToken(db, id, { role: "owner", platform_admin: true });
  return { id, slug, owner: owner.text, member: member.text, operator: operator.text };
}

export interface TestTokenOptions {
  readonly role?: "owner" | "member";
  readonly platform_admin?: boolean;
  readonly scopes?: readonly Scope[];
  readonly approval_mode?: boolean;
  readonly project_ids?: readonly string[];
  readonly expires_at?: Date;
}

/** Inserts a token directly into the database. */
export async function testToken(
  db: Db,
  orgId: string,
  options: TestTokenOptions,
): Promise<{ readonly id: string; readonly text: string }> {
  const text = newTokenText(options.platform_admin ? "a" : options.role === "owner" ? "o" : "m");
  const id = newId("tok");
  await insertToken(db, {
    id,
    org_id: orgId,
    name: "test",
    role: options.role ?? "member",
    platform_admin: options.platform_admin ?? false,
    scopes: options.scopes ?? scopes,
    approval_mode: options.approval_mode ?? false,
    project_ids: options.project_ids ?? null,
    prefix: prefixOf(text),
    hash: hashOf(text),
    created_by: null,
    created_at: new Date(),
    expires_at: options.expires_at ?? null,
  });
  return { id, text };
}
