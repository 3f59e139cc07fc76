import { tenantDatabaseChangesSuite } from "../../ports/tenant-database-changes.suite.ts";
import { tenantDatabaseSuite } from "../../ports/tenant-database.suite.ts";
import { testTenant } from "../../../test/support/tenant.ts";

tenantDatabaseSuite(() => testTenant());
tenantDatabaseChangesSuite(() => testTenant());
