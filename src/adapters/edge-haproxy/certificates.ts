import { createHash, createPrivateKey, X509Certificate } from "node:crypto";
import type { CertificateTable, EdgeCertificate } from "../../ports/edge.ts";
import { certificateList } from "./haproxy-settings.ts";

/** One certificate as HAProxy reads it. */
export interface CertificateFile {
  /** Named after its content: a renewed certificate is another file, so that one is loaded before the other goes. */
  readonly name: string;
  /** Secret. */
  readonly pem: string;
  /** Its line in the list of certificates. */
  readonly line: string;
}

/** The files of a table, and the names of certificates that cannot be read: HAProxy would refuse to start with one of them. */
export function certificateFiles(table: CertificateTable): { files: CertificateFile[]; unreadable: string[] } {
  const files: CertificateFile[] = [];
  const unreadable: string[] = [];
  for (const certificate of table.certificates) {
    if (isReadable(certificate)) files.push(fileOf(certificate));
    else unreadable.push(...certificate.names);
  }
  return { files, unreadable };
}

function isReadable({ chain_pem, key_pem }: EdgeCertificate): boolean {
  try {
    return new X509Certificate(chain_pem).checkPrivateKey(createPrivateKey(key_pem));
  } catch {
    return false;
  }
}

function fileOf({ names, chain_pem, key_pem }: EdgeCertificate): CertificateFile {
  // A blank line would end the payload of a runtime command.
  const pem = `${key_pem}\n${chain_pem}\n`.replaceAll(/\r?\n(?:\s*\n)*/g, "\n");
  const digest = createHash("sha256").update(names.join(" ")).update(pem).digest("hex").slice(0, 32);
  const name = `certificates/${digest}.pem`;
  return { name, pem, line: `${name} ${names.join(" ")}\n` };
}

/** The file of the list of certificates. */
export function certificateListText(files: readonly CertificateFile[]): string {
  return files.map(({ line }) => line).join("");
}

/** A command of the runtime API and what it answers when it succeeds. */
export interface CertificateCommand {
  readonly command: string;
  readonly success: RegExp;
}

/** Loads new certificates, then unloads those that are not wanted any more. `loaded` are file names. */
export function certificateCommands(
  files: readonly CertificateFile[],
  loaded: readonly string[],
): CertificateCommand[] {
  const missing = files.filter(({ name }) => !loaded.includes(name));
  const surplus = loaded.filter((name) => !files.some((file) => file.name === name));
  return [
    ...missing.flatMap(({ name, pem, line }) => [
      { command: `new ssl cert ${name}`, success: /New empty certificate store/ },
      { command: `set ssl cert ${name} <<\n${pem}`, success: /Transaction created/ },
      { command: `commit ssl cert ${name}`, success: /Success!/ },
      { command: `add ssl crt-list ${certificateList} <<\n${line}`, success: /Success!/ },
    ]),
    ...surplus.flatMap((name) => [
      { command: `del ssl crt-list ${certificateList} ${name}`, success: /deleted in crtlist/ },
      { command: `del ssl cert ${name}`, success: /deleted/ },
    ]),
  ];
}

/** The file names in the answer to `show ssl crt-list`. */
export function readCertificateList(text: string): string[] {
  return Array.from(text.matchAll(/^(certificates\/\S+\.pem)/gm), ([, name]) => name as string);
}
