import { createLocalPostgresHost } from "../../src/adapters/postgres-host-local/local-postgres-host.ts";
import { makeTestPlace } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { newDatabaseSpec } from "../../src/ports/postgres-host.suite.ts";

/** Starts a PostgreSQL host of its own with one database. */
export async function startServer() {
  const { options, remove } = makeTestPlace();
  const [host, spec] = [createLocalPostgresHost(options), newDatabaseSpec()];
  const end = async () => {
    await host.destroy(spec.id);
    remove();
  };
  return { host, spec, bin: options.binDir, endpoint: await host.ensure(spec), [Symbol.asyncDispose]: end };
}
