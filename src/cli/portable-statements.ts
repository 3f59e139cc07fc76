import { createInterface } from "node:readline";
import type { Readable } from "node:stream";

// Each of these stands on a line of its own in what pg_dump writes. Roles of another server do not exist here, and newer versions set
// what older ones do not know.
const unportable = [
  /^ALTER [A-Z ]+ .* OWNER TO .*;$/,
  /^(?:GRANT|REVOKE) .* (?:TO|FROM) .*;$/,
  /^ALTER DEFAULT PRIVILEGES .*;$/,
  /^SET (?:transaction_timeout|default_table_access_method|SESSION AUTHORIZATION) .*;$/,
  /^COMMENT ON EXTENSION .*;$/,
];

// Read as latin1, which gives every byte back as it was.
/** The lines of a plain dump without those that only its old server could run. Data between COPY and `\.` stays as it is. */
export async function* portableStatements(dump: Readable): AsyncGenerator<Buffer> {
  let isData = false;
  for await (const line of createInterface({
    input: dump.setEncoding("latin1"),
    crlfDelay: Number.POSITIVE_INFINITY,
  })) {
    if (isData) isData = line !== "\\.";
    else if (unportable.some((pattern) => pattern.test(line))) continue;
    else isData = /^COPY .* FROM stdin;$/.test(line);
    yield Buffer.from(`${line}\n`, "latin1");
  }
}
