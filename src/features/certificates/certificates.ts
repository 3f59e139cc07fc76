import { X509Certificate } from "node:crypto";
import type { EdgeCertificate } from "../../ports/edge.ts";
import type { Db } from "../../store/database.ts";
import type { Vault } from "../../store/vault.ts";
import * as queries from "./queries.ts";
import type { Lease } from "../../store/leases.ts";
import { covers } from "./rules.ts";

export * from "./rules.ts";
export {
  certificatesMark,
  challengeAnswer,
  changedHostnames,
  claimDue,
  deleteAccount,
  deleteChallenge,
  forwardRenewal,
  insertChallenge,
  plannedRenewals,
  previewFirsts,
  recentFirsts,
  recentOrders,
  saveAccountUrl,
  saveAttempt,
  saveStep,
  servingCertificates,
  syncWanted,
  type DueCertificate,
  type WantedName,
} from "./queries.ts";

/** The hostnames that this control plane's edge serves over HTTPS, as the edge last confirmed. */
export class HttpsNames {
  #names: ReadonlySet<string> = new Set();

  set(names: readonly string[]): void {
    this.#names = new Set(names);
  }

  has(hostname: string): boolean {
    return covers(this.#names, hostname);
  }
}

const accountKeyName = "acme_account_key";
const keyName = "certificate_key";

/** Returns the account at a directory; the first order registers it. `createKey` creates the key of a new account. */
export async function openAccount(
  { db, vault }: { readonly db: Db; readonly vault: Vault },
  directory: string,
  createKey: () => Promise<string>,
): Promise<{ readonly key_pem: string; readonly url: string | null }> {
  const found = await queries.accountOf(db, directory);
  if (found !== undefined) return { key_pem: vault.open(directory, accountKeyName, found.sealed_key), url: found.url };
  await queries.insertAccount(db, directory, vault.seal(directory, accountKeyName, await createKey()));
  return openAccount({ db, vault }, directory, createKey);
}

/** Stores an issued certificate in place of the old one; returns its validity. */
export async function storeCertificate(
  { db, vault }: { readonly db: Db; readonly vault: Vault },
  { due, lease }: { readonly due: queries.DueCertificate; readonly lease: Lease },
  issued: { readonly chain_pem: string; readonly key_pem: string },
) {
  const { validFromDate: not_before, validToDate: not_after } = new X509Certificate(issued.chain_pem);
  const sealed_key = vault.seal(due.id, keyName, issued.key_pem);
  await queries.saveIssued(db, lease, { chain_pem: issued.chain_pem, sealed_key, not_before, not_after });
  return { not_before, not_after };
}

/** Returns the certificates that edges serve: the platform's own, then the ordered ones for the remaining names. */
export type ReadEdgeCertificates = (own: readonly EdgeCertificate[]) => Promise<readonly EdgeCertificate[]>;

/** Loads and opens each key once: thousands of certificates stay unchanged while one is renewed. */
export function createEdgeCertificates({
  db,
  vault,
}: {
  readonly db: Db;
  readonly vault: Vault;
}): ReadEdgeCertificates {
  let opened = new Map<string, { readonly version: string; readonly certificate: EdgeCertificate }>();
  return async (own) => {
    const serving = await queries.servingCertificates(db);
    const isOpened = ({ id, version }: (typeof serving)[number]) => opened.get(id)?.version === version;
    const unread = serving.filter((each) => !isOpened(each)).map(({ id }) => id);
    const read = new Map(
      (await queries.sealedCertificates(db, unread)).map(({ id, hostname, chain_pem, sealed_key }) => {
        return [id, { names: [hostname], chain_pem, key_pem: vault.open(id, keyName, sealed_key) }];
      }),
    );
    opened = new Map(
      serving.flatMap(({ id, version }) => {
        const certificate = read.get(id) ?? opened.get(id)?.certificate;
        return certificate === undefined ? [] : [[id, { version, certificate }] as const];
      }),
    );
    return distinct([...own, ...[...opened.values()].map(({ certificate }) => certificate)]);
  };
}

/** Assigns each name to the first certificate that has it. */
function distinct(certificates: readonly EdgeCertificate[]): readonly EdgeCertificate[] {
  const seen = new Set<string>();
  return certificates.flatMap((certificate) => {
    const names = certificate.names.filter((name) => !seen.has(name));
    for (const name of names) seen.add(name);
    return names.length === 0 ? [] : [{ ...certificate, names }];
  });
}
