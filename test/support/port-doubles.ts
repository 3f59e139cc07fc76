import { forwardedAddress } from "../../src/kit/server-address.ts";
import type { Builder } from "../../src/ports/builder.ts";
import type { Dns } from "../../src/ports/dns.ts";
import type { Edge } from "../../src/ports/edge.ts";
import type { LogStore } from "../../src/ports/log-store.ts";
import type { PostgresHost } from "../../src/ports/postgres-host.ts";
import type { Repositories } from "../../src/ports/repositories.ts";
import type { Instance, Runtime } from "../../src/ports/runtime.ts";
import type { Storages } from "../../src/ports/storage.ts";
import type { TenantDatabase } from "../../src/ports/tenant-database.ts";
import type { Wakeups } from "../../src/store/wakeups.ts";

// One double per port; a test overrides the members that it needs. Every member is listed, so that a new member of a port is a type error only
// in this file. A member without a neutral result throws when a test reaches it.

function unexpected(member: string): (...given: unknown[]) => never {
  return () => {
    throw new Error(`the test reached ${member}, which it did not provide`);
  };
}

const done = async (): Promise<void> => {};

/** These storages, the disk as the default one. */
export function storagesDouble(named: Storages["named"] = {}): Storages {
  return { standard: "disk", named, encrypt: unexpected("storages.encrypt") };
}

/** Returns a method of a storage that answers nothing before its signal, and when it is called. */
export function silentStorage() {
  const { promise: called, resolve } = Promise.withResolvers<void>();
  const call = (_: unknown, signal?: AbortSignal) =>
    new Promise<never>((_resolve, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason as Error));
      resolve();
    });
  return { call, called };
}

/** A runtime without workloads. */
export function runtimeDouble(given: Partial<Runtime> = {}): Runtime {
  return {
    describe: async () => ({ name: "process", network: "shared", isolation: ["namespaces"], missing: [] }),
    start: unexpected("runtime.start"),
    observe: async () => [],
    stop: done,
    remove: done,
    runOnce: unexpected("runtime.runOnce"),
    readOutput: async () => ({ lines: [], cursor: "0", dropped_bytes: 0 }),
    discardOutput: done,
    endpointFor: forwardedAddress,
    onChange: () => () => {},
    removeImage: done,
    listening: async () => [],
    checkHealth: async () => ({ outcome: "none" }),
    measure: async () => [],
    hasStorage: async () => true,
    storageBytes: async () => 0,
    limitStorage: async () => 0,
    changedBytes: async () => 0,
    readStorage: async () => null,
    writeStorage: done,
    removeStorage: done,
    listStored: async () => [],
    readStored: async () => Buffer.from("kept"),
    statStored: async () => undefined,
    moveStored: async () => "moved",
    removeStored: async () => true,
    ...given,
  };
}

/** A running instance of the workload that the test names. */
export function instanceDouble(given: Partial<Instance> & Pick<Instance, "workload_id">): Instance {
  return {
    ordinal: 0,
    attempt: 1,
    project_id: "prj_test",
    image_ref: "sha256:0",
    state: "running",
    address: null,
    started_at: new Date(0),
    output_mark: "",
    exit: null,
    ...given,
  };
}

/** A builder that detects every source as static files and has no images. */
export function builderDouble(given: Partial<Builder> = {}): Builder {
  return {
    build: unexpected("builder.build"),
    plan: async () => ({
      outcome: "planned",
      plan: {
        ...{ kind: "static", name: "Static files", uses_dockerfile: false, tools: [], notes: [], steps: [] },
        ...{ web: { command: "static files", because: "index.html" }, processes: {}, release_command: null },
      },
    }),
    images: async () => [],
    adopt: async () => null,
    diskBytes: async () => 0,
    isShortOfSpace: async () => false,
    takenBytes: async () => null,
    clearCaches: done,
    ...given,
  };
}

/** An edge that accepts every route table and has no traffic. */
export function edgeDouble(given: Partial<Edge> = {}): Edge {
  return {
    kind: "haproxy",
    apply: done,
    applyCertificates: done,
    openRequests: async () => new Map(),
    measure: async () => [],
    wakeBy: done,
    reportRequests: done,
    entrance: async () => null,
    observe: async () => ({
      ...{ running: true, listen: "127.0.0.1:1", listen_tls: null, detail: "" },
      ...{ route_version: 0, certificate_version: 0 },
    }),
    stop: done,
    ...given,
  };
}

/** A database host whose members throw unless the test provides them. */
export function postgresHostDouble(given: Partial<PostgresHost> = {}): PostgresHost {
  return {
    ensure: unexpected("postgresHost.ensure"),
    observe: unexpected("postgresHost.observe"),
    hasProcess: unexpected("postgresHost.hasProcess"),
    isReplaced: async () => false,
    tlsOf: () => null,
    history: () => null,
    stop: unexpected("postgresHost.stop"),
    destroy: unexpected("postgresHost.destroy"),
    list: unexpected("postgresHost.list"),
    createDatabase: unexpected("postgresHost.createDatabase"),
    setWritable: unexpected("postgresHost.setWritable"),
    dropDatabase: unexpected("postgresHost.dropDatabase"),
    endSession: unexpected("postgresHost.endSession"),
    limitSession: unexpected("postgresHost.limitSession"),
    readerLogin: unexpected("postgresHost.readerLogin"),
    statements: async () => null,
    openSessionRole: unexpected("postgresHost.openSessionRole"),
    dropSessionRole: unexpected("postgresHost.dropSessionRole"),
    listDatabases: unexpected("postgresHost.listDatabases"),
    dump: unexpected("postgresHost.dump"),
    restore: unexpected("postgresHost.restore"),
    archiveAsText: unexpected("postgresHost.archiveAsText"),
    countRows: unexpected("postgresHost.countRows"),
    ...given,
  };
}

/** Repositories that accept every source and store nothing. */
export function repositoriesDouble(given: Partial<Repositories> = {}): Repositories {
  return {
    ensure: async () => "",
    exists: async () => true,
    inspect: async () => ({ outcome: "fine", message: "", author: "" }),
    peel: async () => null,
    checkRefs: async () => null,
    countCommits: async () => null,
    pin: done,
    unpin: done,
    write: async (_, { content }) => {
      if ("archive" in content)
        for await (const part of content.archive) if (part.length === 0) throw new Error("empty");
      return { outcome: "written", commit: "c".repeat(40), quarantine: noQuarantine };
    },
    fetch: unexpected("repositories.fetch"),
    makeDeployKey: async (comment) => ({ publicKey: `ssh-ed25519 AAAA ${comment}`, privateKey: "private" }),
    discard: done,
    pinned: async () => null,
    parentOf: async () => null,
    files: async () => [],
    read: async () => null,
    changedPaths: async () => null,
    compare: async () => null,
    archive: unexpected("repositories.archive"),
    pack: async () => null,
    unpack: unexpected("repositories.unpack"),
    resolve: async () => null,
    moveRef: unexpected("repositories.moveRef"),
    repairRef: unexpected("repositories.repairRef"),
    setHead: done,
    diskBytes: async () => 0,
    remove: done,
    sweep: done,
    ...given,
  };
}

const noQuarantine = { GIT_OBJECT_DIRECTORY: "", GIT_ALTERNATE_OBJECT_DIRECTORIES: "", GIT_QUARANTINE_PATH: "" };

/** An empty log store that discards what it receives. */
export function logStoreDouble(given: Partial<LogStore> = {}): LogStore {
  return {
    appendBuild: done,
    readBuild: async (_, offset) => ({ text: "", next_offset: offset }),
    readBuildTimes: async () => [],
    appendRuntime: done,
    appendRequests: done,
    visitRequests: done,
    visitRuntime: done,
    readRuntime: async () => ({ lines: [], cursor: "0" }),
    readPosition: async () => null,
    forgetPositions: done,
    remove: done,
    removeBuilds: done,
    ...given,
  };
}

/** A DNS without records. */
export function dnsDouble(given: Partial<Dns> = {}): Dns {
  const none = async () => ({ outcome: "none" }) as const;
  return { addresses: none, texts: none, alias: none, authorities: none, ...given };
}

/** A project's database in which every table exists and is empty, and which accepts every row. */
export function tenantDatabaseDouble(given: Partial<TenantDatabase> = {}): TenantDatabase {
  const nothing = { row: {}, cut: [] };
  const page = { rows: [], versions: [], more: false, total: 0, estimated: false };
  return {
    listTables: async () => ({ outcome: "done", found: { tables: [], total: 0 } }),
    readRows: async () => ({
      outcome: "done",
      found: { kind: "table", columns: [], primary_key: null, keys: [], ...page },
    }),
    query: async () => ({ outcome: "done", found: { columns: [], rows: [], cut: [], more: false } }),
    listConnections: async () => ({ outcome: "done", found: { connections: [], limit: 20, more: false } }),
    endConnection: async () => ({ outcome: "done", found: null }),
    listExtensions: async () => ({ outcome: "done", found: [] }),
    insertRow: async () => ({ outcome: "done", found: nothing }),
    updateRow: async () => ({ outcome: "done", found: nothing }),
    findRow: async () => ({ outcome: "done", found: null }),
    deleteRow: async () => ({ outcome: "done", found: null }),
    ...given,
  };
}

/** Wake-ups without receivers. */
export function wakeupsDouble(given: Partial<Wakeups> = {}): Wakeups {
  return { send: done, on: () => () => {}, isListening: () => true, close: done, ...given };
}
