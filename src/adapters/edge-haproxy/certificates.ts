import { createHash, createPrivateKey, X509Certificate } from "node:crypto";
import type { CertificateTable, EdgeCertificate } from "../../ports/edge.ts";
import { certificateList } from "./haproxy-settings.ts";
import { attempt } from "../../kit/attempt.ts";

export type CertificateFile = ReturnType<typeof fileOf>;

/**
 * Returns the certificate files of a table, and the names of certificates that can't be parsed: HAProxy would refuse to start with one of
 * those. Files that are written already are not parsed again: parsing takes a millisecond each.
 */
export function certificateFiles(
  table: CertificateTable,
  isWritten: (name: string) => boolean = () => false,
): { files: CertificateFile[]; unreadable: string[] } {
  const files: CertificateFile[] = [];
  const unreadable: string[] = [];
  for (const certificate of table.certificates) {
    const file = fileOf(certificate);
    if (isWritten(file.name) || isReadable(certificate)) files.push(file);
    else unreadable.push(...certificate.names);
  }
  return { files, unreadable };
}

function isReadable({ chain_pem, key_pem }: EdgeCertificate): boolean {
  return attempt(() => new X509Certificate(chain_pem).checkPrivateKey(createPrivateKey(key_pem)), false);
}

function fileOf({ names, chain_pem, key_pem }: EdgeCertificate) {
  // Remove blank lines: one would end the payload of a runtime command.
  const pem = `${key_pem}\n${chain_pem}\n`.replaceAll(/\r?\n(?:\s*\n)*/g, "\n");
  const digest = createHash("sha256").update(names.join(" ")).update(pem).digest("hex").slice(0, 32);
  const name = `certificates/${digest}.pem`;
  return {
    /** Derived from the content: a renewed certificate is a new file, so it can be loaded before the old one is removed. */
    name,
    /** Secret. */
    pem,
    line: `${name} ${names.join(" ")}\n`,
  };
}

export function certificateListText(files: readonly CertificateFile[]): string {
  return files.map(({ line }) => line).join("");
}

/** A command of the runtime API and the pattern of a successful answer. */
export interface CertificateCommand {
  readonly command: string;
  readonly success: RegExp;
}

/** What a worker has loaded, by file name. */
export type LoadedCertificates = ReturnType<typeof readLoadedCertificates>;

/** Returns the commands that load new certificates, also where an earlier attempt was interrupted, then unload those no longer wanted. */
export function certificateCommands(
  files: readonly CertificateFile[],
  { listed, stored, unfinished }: LoadedCertificates,
): CertificateCommand[] {
  const missing = files.filter(({ name }) => !listed.includes(name));
  const surplus = (loaded: readonly string[]) => loaded.filter((name) => !files.some((file) => file.name === name));
  return [
    ...(unfinished === undefined ? [] : [{ command: `abort ssl cert ${unfinished}`, success: /aborted/ }]),
    ...missing.flatMap(({ name, pem, line }) => [
      ...(stored.includes(name) ? [] : [{ command: `new ssl cert ${name}`, success: /New empty certificate store/ }]),
      { command: `set ssl cert ${name} <<\n${pem}`, success: /Transaction created/ },
      { command: `commit ssl cert ${name}`, success: /Success!/ },
      { command: `add ssl crt-list ${certificateList} <<\n${line}`, success: /Success!/ },
    ]),
    ...surplus(listed).map((name) => ({
      command: `del ssl crt-list ${certificateList} ${name}`,
      success: /deleted in crtlist/,
    })),
    ...surplus(stored).map((name) => ({ command: `del ssl cert ${name}`, success: /deleted/ })),
  ];
}

/** Parses the answers to `show ssl crt-list` and `show ssl cert`. The latter has the one of an unfinished change behind an asterisk. */
export function readLoadedCertificates(list: string, store: string) {
  const unfinished = /^\*(certificates\/\S+\.pem)/m.exec(store)?.[1];
  return {
    /** In the crt-list: served. */
    listed: namesIn(list),
    /** In memory. Also has those whose loading was interrupted before they were listed. */
    stored: namesIn(store),
    /** The certificate of an interrupted change. HAProxy refuses to change any other before that one ends. */
    unfinished,
  };
}

function namesIn(text: string): string[] {
  return Array.from(text.matchAll(/^(certificates\/\S+\.pem)/gm), ([, name]) => name as string);
}
