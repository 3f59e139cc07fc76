import { existsSync } from "node:fs";
import type { Db } from "./database.ts";
import { keysInUse } from "./rotate-vault.ts";
import { openVault } from "./vault.ts";

/** Returns, as a sentence for the operator, why the key file cannot belong to this database; undefined if it may. Creates no key. */
export async function keyProblem(db: Db, keyFile: string): Promise<string | undefined> {
  const remedy =
    "Restore the key file from a copy: without it, variables, database passwords and certificates are lost.";
  if (!existsSync(keyFile))
    return (await keysInUse(db)).size === 0
      ? undefined
      : `The key file ${keyFile} is missing, but the database holds secrets that it encrypted. ${remedy}`;
  const samples = await db.selectFrom("project").select(["id", "sealed_cron_secret"]).limit(3).execute();
  const vault = openVault({ keyFile });
  const isForeign = samples.every(({ id, sealed_cron_secret }) => {
    try {
      return vault.open(id, "cron_secret", sealed_cron_secret) === null;
    } catch {
      return true;
    }
  });
  if (samples.length === 0 || !isForeign) return undefined;
  return `The key file ${keyFile} decrypts none of the database's secrets, so it belongs to another database. ${remedy}`;
}
