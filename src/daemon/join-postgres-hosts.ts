import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSpec, PostgresHost } from "../ports/postgres-host.ts";

export interface JoinedHosts {
  readonly local: PostgresHost;
  /** An existing server; null where none is set. */
  readonly server: PostgresHost | null;
  /** Of the instances on this machine, a folder each; notes which databases were made on the server. */
  readonly dir: string;
}

/**
 * New databases are made on the existing server where there is one. Those that this machine has already stay here: their data would otherwise
 * be left behind. A database on the server is never made anew here because the setting went away.
 */
export function joinPostgresHosts({ local, server, dir }: JoinedHosts): PostgresHost {
  const noteOf = (id: string) => join(dir, `${id}.on-server`);
  const isOnServer = (id: string) => existsSync(noteOf(id));
  const isOutOfReach = (id: string) => server === null && isOnServer(id);
  const hostOf = (id: string): PostgresHost => {
    if (server !== null && !existsSync(join(dir, id))) return server;
    if (isOutOfReach(id)) throw new Error(`the database ${id} is on the server of BERTH_PG_URL, which is not set`);
    return local;
  };
  const of =
    <Given extends unknown[], Result>(
      call: (host: PostgresHost) => (spec: DatabaseSpec, ...given: Given) => Promise<Result>,
    ) =>
    async (spec: DatabaseSpec, ...given: Given): Promise<Result> =>
      call(hostOf(spec.id))(spec, ...given);
  return {
    async ensure(spec, signal) {
      const host = hostOf(spec.id);
      const endpoint = await host.ensure(spec, signal);
      if (host === server && !isOnServer(spec.id)) {
        mkdirSync(dir, { recursive: true, mode: 0o700 });
        writeFileSync(noteOf(spec.id), "");
      }
      return endpoint;
    },
    observe: async (spec) => (isOutOfReach(spec.id) ? { state: "stopped" } : hostOf(spec.id).observe(spec)),
    hasProcess: (id) => !isOutOfReach(id) && hostOf(id).hasProcess(id),
    tlsOf: (id) => (isOutOfReach(id) ? null : hostOf(id).tlsOf(id)),
    stop: async (id) => hostOf(id).stop(id),
    async destroy(id) {
      await hostOf(id).destroy(id);
      rmSync(noteOf(id), { force: true });
    },
    // A server that is away keeps nothing on this machine from being listed.
    list: async () => [...(await local.list()), ...((await server?.list().catch(() => [])) ?? [])],
    createDatabase: of((host) => host.createDatabase),
    dropDatabase: of((host) => host.dropDatabase),
    endSession: of((host) => host.endSession),
    readerLogin: of((host) => host.readerLogin),
    openSessionRole: of((host) => host.openSessionRole),
    dropSessionRole: of((host) => host.dropSessionRole),
    listDatabases: of((host) => host.listDatabases),
    dump: of((host) => host.dump),
    restore: of((host) => host.restore),
    archiveAsText: of((host) => host.archiveAsText),
    countRows: of((host) => host.countRows),
  };
}
