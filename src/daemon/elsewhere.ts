import { Refused } from "../features/context.ts";
import { findPrimary } from "../features/control-planes/control-planes.ts";
import { describedMachine } from "../features/platform/platform.ts";
import type { Builder } from "../ports/builder.ts";
import type { Edge, EdgeStatus } from "../ports/edge.ts";
import type { LogStore } from "../ports/log-store.ts";
import type { PlatformArchive } from "../ports/platform-archive.ts";
import type { PostgresHost } from "../ports/postgres-host.ts";
import type { Repositories } from "../ports/repositories.ts";
import type { Runtime, RuntimeDescription } from "../ports/runtime.ts";
import type { TenantDatabase } from "../ports/tenant-database.ts";
import type { Db } from "../store/database.ts";

/** Returns stand-ins for the parts that only the primary has. They refuse every call that needs the primary's disk. */
export function partsOfPrimary(db: Db) {
  return {
    builder: absent<Builder>("Builds"),
    runtime: absent<Runtime>("Applications", {
      machines: undefined,
      describe: () => describePrimary(db),
      observe: async () => [],
      onChange: () => () => {},
    }),
    postgresHost: absent<PostgresHost>("Databases", { list: async () => [], tlsOf: () => null }),
    tenantDatabase: absent<TenantDatabase>("Databases"),
    repositories: absent<Repositories>("Repositories"),
    logStore: absent<LogStore>("Logs"),
    platformArchive: absent<PlatformArchive>("Backups of the platform"),
  };
}

/** Returns an edge that carries no traffic, for a process without the role `edge`. */
export function noEdge(): Edge {
  return absent<Edge>("The edge", {
    kind: "haproxy",
    openRequests: async () => new Map(),
    measure: async () => [],
    wakeBy: async () => {},
    reportRequests: async () => {},
    entrance: async () => null,
    observe: async () => noEdgeStatus,
    stop: async () => {},
  });
}

const noEdgeStatus: EdgeStatus = {
  ...{ running: false, listen: null, listen_tls: null, route_version: 0, certificate_version: 0 },
  detail: "This process has no edge.",
};

/** Returns a part that refuses every call except those in `given`. */
function absent<T extends object>(what: string, given: Partial<T> = {}): T {
  const refuse = async () => {
    throw new Refused("unavailable", {
      error: `Only the primary control plane has ${what}; this process is not the primary.`,
    });
  };
  return new Proxy(given as T, {
    get: (own, name) => (name in own ? (own[name as keyof T] as unknown) : name === "then" ? undefined : refuse),
  });
}

const unknown: RuntimeDescription = { name: "process", network: "shared", isolation: [], missing: [] };

async function describePrimary(db: Db): Promise<RuntimeDescription> {
  const primary = await findPrimary(db);
  const machine = primary && (await describedMachine(db, primary.name));
  if (machine === undefined) return unknown;
  const { runtime, network, isolation, missing } = machine;
  return { name: runtime, network: network as RuntimeDescription["network"], isolation, missing };
}
