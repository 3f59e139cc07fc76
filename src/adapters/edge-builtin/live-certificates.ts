import { createSecureContext, type SecureContext } from "node:tls";
import type { CertificateTable, EdgeCertificate } from "../../ports/edge.ts";
import { writeLog } from "./write-log.ts";

interface LiveCertificate extends EdgeCertificate {
  /** Created at the first handshake: parsing thousands of keys at once would delay requests. */
  context?: SecureContext;
}

/** The active certificates, by name. */
export class LiveCertificates {
  version = -1;
  #byName = new Map<string, LiveCertificate>();

  /**
   * Activates a table unless the active one is newer; returns the active version. Unchanged certificates keep their context, and with it
   * the clients' session tickets.
   */
  apply(table: CertificateTable): number {
    if (table.version <= this.version) return this.version;
    const byName = new Map<string, LiveCertificate>();
    for (const given of table.certificates) {
      const present = this.#byName.get(given.names[0] ?? "");
      const isSame = present?.chain_pem === given.chain_pem && present.key_pem === given.key_pem;
      const live: LiveCertificate = { ...given, ...(isSame && present.context ? { context: present.context } : {}) };
      for (const name of given.names) byName.set(name, live);
    }
    this.#byName = byName;
    this.version = table.version;
    return this.version;
  }

  /** Returns the certificate for the exact name, else the wildcard one level above; undefined makes the handshake fail. */
  find(serverName: string): SecureContext | undefined {
    const name = serverName.toLowerCase();
    const found = this.#byName.get(name) ?? this.#byName.get(name.replace(/^[^.]+/, "*"));
    if (found === undefined) return undefined;
    try {
      return (found.context ??= createSecureContext({
        cert: found.chain_pem,
        key: found.key_pem,
        minVersion: "TLSv1.2",
      }));
    } catch (error) {
      writeLog(`The certificate of ${name} cannot be used: ${(error as Error).message}`);
      return undefined;
    }
  }
}
