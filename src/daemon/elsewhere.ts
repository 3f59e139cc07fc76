import { Refused } from "../features/context.ts";
import { findPrimary } from "../features/control-planes/control-planes.ts";
import { describedMachine } from "../features/platform/platform.ts";
import type { Builder } from "../ports/builder.ts";
import type { Edge, EdgeStatus } from "../ports/edge.ts";
import type { LogStore } from "../ports/log-store.ts";
import type { PostgresHost } from "../ports/postgres-host.ts";
import type { Repositories } from "../ports/repositories.ts";
import type { Runtime, RuntimeDescription } from "../ports/runtime.ts";
import type { TenantDatabase } from "../ports/tenant-database.ts";
import type { Db } from "../store/database.ts";

/** What a process that is not the primary has in the place of the parts on the primary's disk: it refuses whatever needs them. */
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
  };
}

/** An edge that carries no traffic, for a process without the role. */
export function noEdge(): Edge {
  return absent<Edge>("The edge", {
    kind: "builtin",
    openRequests: async () => new Map(),
    measure: async () => [],
    entrance: async () => null,
    observe: async () => noEdgeStatus,
    stop: async () => {},
  });
}

const noEdgeStatus: EdgeStatus = {
  ...{ running: false, listen: null, listen_tls: null, route_version: 0, certificate_version: 0 },
  detail: "This process has no edge.",
};

/** A part whose every use is refused, but for what is given. */
function absent<T extends object>(what: string, given: Partial<T> = {}): T {
  const refuse = async () => {
    throw new Refused("unavailable", { error: `${what} are at the primary control plane, which this process is not.` });
  };
  return new Proxy(given as T, {
    get: (own, name) => (name in own ? (own[name as keyof T] as unknown) : name === "then" ? undefined : refuse),
  });
}

const unknown: RuntimeDescription = { name: "process", network: "shared", isolation: [], missing: [] };

/** As the primary last described its machine. */
async function describePrimary(db: Db): Promise<RuntimeDescription> {
  const primary = await findPrimary(db);
  const machine = primary && (await describedMachine(db, primary.name));
  if (machine === undefined) return unknown;
  const { runtime, network, isolation, missing } = machine;
  return { name: runtime, network: network as RuntimeDescription["network"], isolation, missing };
}
