import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import type { EdgeCertificate } from "../ports/edge.ts";
import type { Log } from "../kit/log.ts";
import { StartRefused } from "./start-refused.ts";

/**
 * Reads the operator's own certificates. The returned function reads them again after a file was replaced; if that fails, it logs the error
 * and returns the last content.
 */
export function openOwnCertificates(files: readonly string[], log: Log): () => readonly EdgeCertificate[] {
  let [stamp, certificates] = [stampOf(files), files.map(readCertificate)];
  return () => {
    try {
      const now = stampOf(files);
      if (now !== stamp) certificates = files.map(readCertificate);
      stamp = now;
    } catch (error) {
      log.error(
        { error: (error as Error).message },
        "a certificate file can't be read; Berth keeps serving the certificate that it read before",
      );
    }
    return certificates;
  };
}

function stampOf(files: readonly string[]): string {
  return files
    .map((file) =>
      (({ ino, mtimeMs }) => `${ino}:${mtimeMs}`)(statSync(file, { throwIfNoEntry: false }) ?? { ino: 0, mtimeMs: 0 }),
    )
    .join();
}

const parts = /-----BEGIN ([A-Z ]+)-----[\s\S]*?-----END \1-----/g;

/** Reads a PEM file with a certificate, its issuers and the private key. The hostnames are those in the certificate. */
function readCertificate(file: string): EdgeCertificate {
  const refuse = (why: string): never => {
    throw new StartRefused(`BERTH_CERTIFICATE_FILES: ${file} ${why}.`);
  };
  const blocks = [...readText(file, refuse).matchAll(parts)];
  const chain_pem = blocks
    .filter(([, kind]) => kind === "CERTIFICATE")
    .map(([text]) => `${text}\n`)
    .join("");
  const key_pem = blocks.find(([, kind]) => kind?.endsWith("PRIVATE KEY"))?.[0] ?? refuse("holds no private key");
  if (chain_pem === "") return refuse("holds no certificate");
  const names = (new X509Certificate(chain_pem).subjectAltName ?? "")
    .split(", ")
    .flatMap((each) => (each.startsWith("DNS:") ? [each.slice(4).toLowerCase()] : []));
  return names.length === 0 ? refuse("names no host") : { names, chain_pem, key_pem: `${key_pem}\n` };
}

function readText(file: string, refuse: (why: string) => never): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    return refuse(`can't be read (${(error as NodeJS.ErrnoException).code})`);
  }
}
