import { X509Certificate } from "node:crypto";

// id-ce-authorityKeyIdentifier (RFC 5280 §4.2.1.1), as DER.
const authorityKeyOid = Buffer.from("0603551d23", "hex");
const keyIdentifierTag = 0x80;

/**
 * Returns the certificate's identifier for renewal information (RFC 9773 §4.1); null when the certificate has no authority key identifier.
 */
export function certificateId(chainPem: string): string | null {
  const certificate = new X509Certificate(chainPem);
  const at = certificate.raw.indexOf(authorityKeyOid);
  if (at === -1) return null;
  // Skip OCTET STRING, SEQUENCE and [0], each with a one-byte length; identifiers usually have 20 bytes.
  const start = at + authorityKeyOid.length + 4;
  if (certificate.raw[start] !== keyIdentifierTag) return null;
  const length = certificate.raw[start + 1] as number;
  const key = certificate.raw.subarray(start + 2, start + 2 + length);
  return `${key.toString("base64url")}.${serialOf(certificate).toString("base64url")}`;
}

/** Encodes the serial number as DER does: a positive number whose first bit is set gets a leading zero byte. */
function serialOf({ serialNumber }: X509Certificate): Buffer {
  const bytes = Buffer.from(serialNumber.length % 2 ? `0${serialNumber}` : serialNumber, "hex");
  return ((bytes[0] as number) & 0x80) === 0 ? bytes : Buffer.concat([Buffer.from([0]), bytes]);
}
