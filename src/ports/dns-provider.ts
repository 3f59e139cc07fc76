/** Changes the zone in which the platform's own names are. */
export interface DnsProvider {
  /** Adds a TXT record beside those that are there; resolves when the zone's server has it. Idempotent. Rejects with a sentence for the operator. */
  addText(record: TextRecord): Promise<void>;
  /** Removes exactly this record. Idempotent. */
  removeText(record: TextRecord): Promise<void>;
}

export interface TextRecord {
  readonly name: string;
  readonly value: string;
}
