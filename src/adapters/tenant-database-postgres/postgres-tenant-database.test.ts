import { tenantDatabaseSuite } from "../../ports/tenant-database.suite.ts";
import { makeTenant } from "./test-fixture.ts";

tenantDatabaseSuite(() => makeTenant());
