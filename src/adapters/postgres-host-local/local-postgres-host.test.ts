import { after, describe } from "node:test";
import { postgresHostSuite } from "../../ports/postgres-host.suite.ts";
import { createLocalPostgresHost } from "./local-postgres-host.ts";
import { login, makeTestPlace, missingPart } from "./test-fixture.ts";

describe("local PostgreSQL instances", { skip: missingPart }, () => {
  const place = makeTestPlace();
  after(() => place.remove());
  postgresHostSuite(async () => ({ host: createLocalPostgresHost(place.options), login }));
});
