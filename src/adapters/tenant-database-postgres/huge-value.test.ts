// Runs alone: a statement has 5 s, and the one on a value of 1 GB needs most of them beside other work.
import { tenantDatabaseHugeValueSuite } from "../../ports/tenant-database-traps.suite.ts";
import { testTenant } from "../../../test/support/tenant.ts";

tenantDatabaseHugeValueSuite(() => testTenant());
