import { tenantDatabaseChangesSuite } from "../../ports/tenant-database-changes.suite.ts";
import { tenantDatabaseSuite } from "../../ports/tenant-database.suite.ts";
import { makeTenant } from "./test-fixture.ts";

tenantDatabaseSuite(() => makeTenant());
tenantDatabaseChangesSuite(() => makeTenant());
