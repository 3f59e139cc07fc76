import type { RegistryLogin } from "../../ports/builder.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Vault } from "../../store/vault.ts";
import { selectRegistry, selectSealed } from "./queries.ts";

import { normalizedHost } from "./rules.ts";

export { privateHostProblem } from "./rules.ts";

export const passwordName = (host: string): string => `registry:${host}`;

/** Returns the registry logins for the organization's builds. */
export async function registryLogins(db: Db | Tx, vault: Vault, orgId: string): Promise<readonly RegistryLogin[]> {
  const rows = await selectSealed(db, orgId);
  return rows.map(({ host, username, sealed_password }) => ({
    host,
    username,
    password: vault.open(orgId, passwordName(host), sealed_password),
  }));
}

/** Returns the registry with this host in the caller's organization; undefined when there is none. */
export async function findRegistry(db: Db | Tx, orgId: string, host: string) {
  const found = await selectRegistry(db, orgId, normalizedHost(host));
  return found && { id: found.host };
}
