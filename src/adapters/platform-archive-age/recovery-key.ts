import { existsSync, readFileSync } from "node:fs";
import { readTextOrEmpty, replaceFile } from "../../kit/whole-file.ts";

export interface RecoveryKeyFiles {
  /** The age identity, as `age-keygen` writes it. The operator may move it away. */
  readonly identity: string;
  /** The age recipient, its public half. */
  readonly recipient: string;
}

/** Returns the public half of the recovery key: of its file, else `known`, else of a new key, whose identity is durable by then. */
export async function ensureRecoveryKey(files: RecoveryKeyFiles, known: string | null): Promise<string> {
  const kept = readTextOrEmpty(files.recipient).trim();
  if (kept !== "") return kept;
  const recipient = known ?? (await ensureIdentity(files.identity, heading));
  replaceFile(files.recipient, `${recipient}\n`, { flush: true });
  return recipient;
}

const heading = "# Berth's recovery key. Only it opens backups of the platform: keep a copy away from this machine.";

/** Makes an age identity, unless the file has one, and returns its recipient. It is durable before anything is encrypted to it. */
export async function ensureIdentity(file: string, about: string): Promise<string> {
  const { generateX25519Identity, identityToRecipient } = await import("age-encryption");
  if (!existsSync(file)) replaceFile(file, `${about}\n${await generateX25519Identity()}\n`, { flush: true });
  return identityToRecipient(readIdentity(file));
}

export function readIdentity(file: string): string {
  const line = readFileSync(file, "utf8")
    .split("\n")
    .find((each) => each.startsWith("AGE-SECRET-KEY-"));
  if (line === undefined) throw new Error(`${file} holds no recovery key: no line of it begins with AGE-SECRET-KEY-.`);
  return line.trim();
}
