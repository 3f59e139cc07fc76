import { createHash, createPublicKey } from "node:crypto";

/** A public key in its stored form, or why a text is not a key. The refusal never quotes the text. */
export type ParsedKey = { readonly public_key: string; readonly fingerprint: string } | { readonly refused: string };

/** Parses one line of OpenSSH's public key format (sshd(8), AUTHORIZED_KEYS FILE FORMAT, without options). Drops the comment. */
export function parsePublicKey(text: string): ParsedKey {
  const line = onlyLine(text);
  if (typeof line !== "string") return line;
  const [type = "", encoded = ""] = line.split(/[ \t]+/);
  const refused = refusedType(type);
  if (refused) return { refused };
  const blob = Buffer.from(encoded, "base64");
  if (blob.toString("base64") !== encoded)
    return { refused: "The key's second word must be base64. Copy the whole line of the .pub file." };
  const wrong = checkBlob(type as KeyType, blob);
  if (wrong) return { refused: wrong };
  const digest = createHash("sha256").update(blob).digest("base64").replace(/=+$/, "");
  return { public_key: `${type} ${encoded}`, fingerprint: `SHA256:${digest}` };
}

const curves = {
  "ecdsa-sha2-nistp256": { name: "nistp256", jwk: "P-256", bytes: 32 },
  "ecdsa-sha2-nistp384": { name: "nistp384", jwk: "P-384", bytes: 48 },
  "ecdsa-sha2-nistp521": { name: "nistp521", jwk: "P-521", bytes: 66 },
} as const;

type KeyType = "ssh-ed25519" | "ssh-rsa" | keyof typeof curves;
const types: readonly string[] = ["ssh-ed25519", "ssh-rsa", ...Object.keys(curves)];
const rsaBits = { least: 2048, most: 16_384 };
const advice = "Create one with: ssh-keygen -t ed25519";
const damaged = "The key is damaged or cut off. Copy the whole line of the .pub file.";

function onlyLine(text: string): string | { refused: string } {
  if (/PRIVATE KEY|PuTTY-User-Key-File/.test(text)) {
    return {
      refused:
        "This is a private key. Never send it to anyone; send the .pub file beside it, and create a new pair if someone else may have seen this one.",
    };
  }
  const lines = text
    .split(/\r\n|\r|\n/)
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  if (lines.length === 1) return lines[0] as string;
  return { refused: lines.length === 0 ? "The text contains no key." : "Send one key at a time, on one line." };
}

function refusedType(type: string): string | undefined {
  if (types.includes(type)) return undefined;
  if (type.startsWith("sk-")) return `Keys on security tokens (${type.slice(0, 40)}) are not supported. ${advice}`;
  if (type === "ssh-dss") return `DSA keys are too weak. ${advice}`;
  return `A public key starts with ${types.join(", ")}. ${advice}`;
}

/** Checks the key's length-prefixed fields, the first of which repeats the type (RFC 8709 §4, RFC 4253 §6.6, RFC 5656 §3.1). */
function checkBlob(type: KeyType, blob: Buffer): string | undefined {
  const fields = readFields(blob);
  if (fields === undefined || fields[0]?.toString("latin1") !== type) return damaged;
  if (type === "ssh-ed25519") return fields.length === 2 && fields[1]?.length === 32 ? undefined : damaged;
  if (type === "ssh-rsa") return checkRsa(fields);
  return checkEcdsa(curves[type], fields);
}

function checkRsa([, exponent, modulus, ...more]: readonly Buffer[]): string | undefined {
  if (!exponent || !modulus || more.length > 0) return damaged;
  const bits = bitLength(modulus);
  if (bits < rsaBits.least) return `RSA keys need at least ${rsaBits.least} bits; this one has ${bits}. ${advice}`;
  if (bits > rsaBits.most) return `RSA keys may have at most ${rsaBits.most} bits.`;
  const odd = ((exponent.at(-1) ?? 0) & 1) === 1 && ((modulus.at(-1) ?? 0) & 1) === 1;
  return odd && bitLength(exponent) > 1 && bitLength(exponent) <= 64 ? undefined : damaged;
}

function checkEcdsa(
  curve: (typeof curves)[keyof typeof curves],
  [, name, point, ...more]: readonly Buffer[],
): string | undefined {
  if (
    name?.toString("latin1") !== curve.name ||
    point?.length !== 1 + 2 * curve.bytes ||
    point[0] !== 4 ||
    more.length > 0
  )
    return damaged;
  const coordinate = (from: number) => point.subarray(from, from + curve.bytes).toString("base64url");
  try {
    // Throws for a point that is not on the curve.
    createPublicKey({
      format: "jwk",
      key: { kty: "EC", crv: curve.jwk, x: coordinate(1), y: coordinate(1 + curve.bytes) },
    });
    return undefined;
  } catch {
    return damaged;
  }
}

function readFields(blob: Buffer): Buffer[] | undefined {
  const fields: Buffer[] = [];
  for (let at = 0; at < blob.length;) {
    if (at + 4 > blob.length) return undefined;
    const length = blob.readUInt32BE(at);
    if (at + 4 + length > blob.length) return undefined;
    fields.push(blob.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return fields;
}

function bitLength(number: Buffer): number {
  const hex = number.toString("hex").replace(/^0+/, "");
  return hex === "" ? 0 : (hex.length - 1) * 4 + Number.parseInt(hex.charAt(0), 16).toString(2).length;
}
