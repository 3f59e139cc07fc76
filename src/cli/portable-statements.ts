import { createInterface } from "node:readline";
import type { Readable } from "node:stream";

// Each is one line in pg_dump's output. Roles of another server do not exist here, and newer versions set parameters that older ones do not
// know.
const unportable = [
  /^ALTER [A-Z ]+ .* OWNER TO .*;$/,
  /^(?:GRANT|REVOKE) .* (?:TO|FROM) .*;$/,
  /^ALTER DEFAULT PRIVILEGES .*;$/,
  /^SET (?:transaction_timeout|default_table_access_method|SESSION AUTHORIZATION) .*;$/,
  /^COMMENT ON EXTENSION .*;$/,
];

// latin1 preserves every byte.
/** Yields a plain dump without the lines that only its old server could run. Data between COPY and `\.` stays unchanged. */
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
