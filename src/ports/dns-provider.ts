/** Changes records in the DNS zone that holds the platform's own names. */
export interface DnsProvider {
  /** Adds a TXT record and keeps existing ones; resolves once the zone's server has it. Idempotent. Rejects with a sentence for the operator. */
  addText(record: TextRecord): Promise<void>;
  /** Removes exactly this record. Idempotent. */
  removeText(record: TextRecord): Promise<void>;
}

export interface TextRecord {
  readonly name: string;
  readonly value: string;
}
