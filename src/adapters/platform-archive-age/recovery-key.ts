import { existsSync, readFileSync } from "node:fs";
import { generateX25519Identity, identityToRecipient } from "age-encryption";
import { readTextOrEmpty, replaceFile } from "../../kit/whole-file.ts";

export interface RecoveryKeyFiles {
  /** The age identity, as `age-keygen` writes it. The operator may move it away. */
  readonly identity: string;
  /** The age recipient, its public half. */
  readonly recipient: string;
}

/**
 * Returns the public half of the recovery key: that of its file, otherwise `known`, otherwise that of a new key. A new key's identity is
 * durable before anything is encrypted to it.
 */
export async function ensureRecoveryKey(files: RecoveryKeyFiles, known: string | null): Promise<string> {
  const kept = readTextOrEmpty(files.recipient).trim();
  if (kept !== "") return kept;
  if (known === null && !existsSync(files.identity))
    replaceFile(files.identity, `${heading}\n${await generateX25519Identity()}\n`, { flush: true });
  const recipient = known ?? (await identityToRecipient(readIdentity(files.identity)));
  replaceFile(files.recipient, `${recipient}\n`, { flush: true });
  return recipient;
}

const heading = "# Berth's recovery key. Only it opens backups of the platform: keep a copy away from this machine.";

/** Reads the age identity in a file. */
export function readIdentity(file: string): string {
  const line = readFileSync(file, "utf8")
    .split("\n")
    .find((each) => each.startsWith("AGE-SECRET-KEY-"));
  if (line === undefined) throw new Error(`${file} holds no recovery key: no line of it begins with AGE-SECRET-KEY-.`);
  return line.trim();
}
