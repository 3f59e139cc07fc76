import { createHash } from "node:crypto";

/**
 * Returns a trust store with the certificates of a PEM bundle, for Java, which reads no PEM files. The format is JKS, which every JDK reads and
 * which needs no encryption: https://github.com/openjdk/jdk/blob/master/src/java.base/share/classes/sun/security/provider/JavaKeyStore.java
 */
export function javaTrustStore(bundle: string): Buffer {
  const certificates = certificatesOf(bundle);
  const head = [uint32(0xfeedfeed), uint32(version), uint32(certificates.length)];
  const content = Buffer.concat([...head, ...certificates.map(entry)]);
  const digest = createHash("sha1").update(utf16(password)).update("Mighty Aphrodite").update(content).digest();
  return Buffer.concat([content, digest]);
}

const version = 2;
const trustedCertificate = 2;
/** Java's default. It protects nothing: the store holds public certificates only. */
const password = "changeit";

/** Returns each certificate of a PEM bundle once, in DER. */
function certificatesOf(bundle: string): Buffer[] {
  const blocks = bundle.matchAll(/-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----([^-]+)-----END/g);
  const unique = new Set([...blocks].map(([, body = ""]) => body.replaceAll(/\s/g, "")));
  return [...unique].map((body) => Buffer.from(body, "base64"));
}

function entry(certificate: Buffer, index: number): Buffer {
  const date = Buffer.alloc(8);
  const parts = [uint32(trustedCertificate), text(`ca-${index + 1}`), date, text("X.509")];
  return Buffer.concat([...parts, uint32(certificate.length), certificate]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** A string as Java's `writeUTF` writes it; ASCII only. */
function text(value: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(value.length);
  return Buffer.concat([length, Buffer.from(value, "ascii")]);
}

/** In the byte order of Java: high byte first. */
const utf16 = (value: string): Buffer => Buffer.from(value, "utf16le").swap16();
