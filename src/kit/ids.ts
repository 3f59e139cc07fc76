import { randomBytes } from "node:crypto";

/** The kinds of objects that have an id, by the id's prefix. */
export type IdPrefix =
  | "prj"
  | "dep"
  | "bld"
  | "bak"
  | "bop"
  | "pbk"
  | "arc"
  | "acp"
  | "tok"
  | "per"
  | "ses"
  | "inv"
  | "idn"
  | "key"
  | "org"
  | "apr"
  | "run"
  | "job"
  | "evt"
  | "dbs"
  | "dbb"
  | "dom"
  | "crt"
  | "ntf"
  | "alt"
  | "pur"
  | "tun"
  | "whk"
  | "fol"
  | "fdl"
  | "fpv"
  | "ipr"
  | "snp";

// Crockford's base 32 has no i, l, o, u, so that ids can be read aloud.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";

/** Creates an id such as `prj_01jd3v0k…`: a UUIDv7 (RFC 9562 §5.7) in 26 base-32 characters, so ids sort by creation time. */
export function newId(prefix: IdPrefix, nowMs: number = Date.now()): string {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(nowMs, 0, 6);
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x70;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  return `${prefix}_${base32(bytes)}`;
}

function base32(bytes: Buffer): string {
  let rest = BigInt(`0x${bytes.toString("hex")}`);
  let text = "";
  for (let i = 0; i < 26; i += 1) {
    text = alphabet.charAt(Number(rest & 31n)) + text;
    rest >>= 5n;
  }
  return text;
}
