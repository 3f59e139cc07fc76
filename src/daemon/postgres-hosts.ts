import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSpec, PostgresHost } from "../ports/postgres-host.ts";
import type { MissingPart, Runtime } from "../ports/runtime.ts";

interface JoinedHosts {
  readonly local: PostgresHost;
  /** The existing server of `BERTH_PG_URL`; null if that is not set. */
  readonly server: PostgresHost | null;
  /** Holds a folder for each instance on this machine, and a marker file for each database on the server. */
  readonly dir: string;
}

/**
 * Joins both hosts. New databases go to the existing server if there is one; databases that this machine already has stay here with their
 * data. A database on the server is never created anew here because the setting was removed.
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
    isReplaced: async (id) => !isOutOfReach(id) && hostOf(id).isReplaced(id),
    tlsOf: (id) => (isOutOfReach(id) ? null : hostOf(id).tlsOf(id)),
    history: (id) => (isOutOfReach(id) ? null : hostOf(id).history(id)),
    stop: async (id) => hostOf(id).stop(id),
    async destroy(id) {
      await hostOf(id).destroy(id);
      rmSync(noteOf(id), { force: true });
    },
    // An unreachable server must not hide the databases on this machine.
    list: async () => [...(await local.list()), ...((await server?.list().catch(() => [])) ?? [])],
    createDatabase: of((host) => host.createDatabase),
    setWritable: of((host) => host.setWritable),
    dropDatabase: of((host) => host.dropDatabase),
    endSession: of((host) => host.endSession),
    limitSession: of((host) => host.limitSession),
    readerLogin: of((host) => host.readerLogin),
    statements: of((host) => host.statements),
    openSessionRole: of((host) => host.openSessionRole),
    dropSessionRole: of((host) => host.dropSessionRole),
    listDatabases: of((host) => host.listDatabases),
    dump: of((host) => host.dump),
    restore: of((host) => host.restore),
    archiveAsText: of((host) => host.archiveAsText),
    countRows: of((host) => host.countRows),
  };
}

/** Returns which isolation is missing when projects' databases share one server. */
export function missingOnServer(openDatabases: readonly string[]): MissingPart[] {
  const open = openDatabases.join(", ");
  return [
    {
      part: "database_servers",
      effect:
        "The databases of all projects are on one PostgreSQL server: each has roles, a database and 20 connections of its own, but no memory, processors or disk of its own, and its role sees the names of the others.",
      remedy: "Unset BERTH_PG_URL, and each project gets a server of its own on this machine.",
    },
    ...(open === ""
      ? []
      : [
          {
            part: "databases_of_others",
            effect: `Applications can log in to databases on the server that do not belong to Berth: ${open}.`,
            remedy: "REVOKE CONNECT ON DATABASE … FROM PUBLIC for each of them, or give Berth a server of its own.",
          },
        ]),
  ];
}

/** Returns the runtime with these parts added to what its description lists as missing. */
export function withMissing(runtime: Runtime, missing: () => readonly MissingPart[]): Runtime {
  const describe: Runtime["describe"] = async () => {
    const described = await runtime.describe();
    return { ...described, missing: [...described.missing, ...missing()] };
  };
  return new Proxy(runtime, {
    get(target, name) {
      if (name === "describe") return describe;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}
