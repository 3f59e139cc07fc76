import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { statSync } from "node:fs";
import { createKeyring, readKeyring, type Keyring } from "./keyring.ts";

/** Seals secrets for the database with a key that is never stored in it. A value sealed for one project and name can't be opened for another. */
export type Vault = ReturnType<typeof openVault>;

/** Thrown when a sealed value can't be opened. The message is a sentence for the operator and holds no secret. */
class VaultRefused extends Error {
  override readonly name = "VaultRefused";
}

/** Opens the vault of a key file and creates the file (mode 0600) if it does not exist. Picks up keys that a rotation adds. */
export function openVault(options: { readonly keyFile: string }) {
  createKeyring(options.keyFile);
  const keys = watchedKeyring(options.keyFile);
  return {
    seal(projectId: string, name: string, text: string) {
      const { current, keys: all } = keys();
      return sealWith({ number: current, key: all.get(current) as Buffer }, { projectId, name }, text);
    },
    /** Throws `VaultRefused` when the value was sealed under another key, project or name, or was modified. */
    open(projectId: string, name: string, sealed: Buffer) {
      const number = keyOf(sealed);
      const key = keys().keys.get(number);
      if (!key)
        throw new VaultRefused(
          `A secret was sealed with key ${number}, which the key file does not hold. Restore the key file that belongs to this database.`,
        );
      return openWith({ number, key }, { projectId, name }, sealed);
    },
    currentKey: () => keys().current,
  };
}

export function keyOf(sealed: Buffer): number {
  if (sealed.length < headerBytes + tagBytes || sealed[0] !== format)
    throw new VaultRefused("A sealed secret of the database is damaged.");
  return sealed.readUInt32BE(1);
}

interface Binding {
  readonly projectId: string;
  readonly name: string;
}

interface NumberedKey {
  readonly number: number;
  readonly key: Buffer;
}

// Layout: format (1), key number (4), nonce (12), ciphertext, tag (16). NIST SP 800-38D: random 96-bit nonces are safe for 2^32 values per key.
const format = 1;
const nonceBytes = 12;
const tagBytes = 16;
const headerBytes = 1 + 4 + nonceBytes;
const algorithm = "aes-256-gcm";

function sealWith({ number, key }: NumberedKey, binding: Binding, text: string): Buffer {
  const header = Buffer.alloc(headerBytes);
  header[0] = format;
  header.writeUInt32BE(number, 1);
  randomBytes(nonceBytes).copy(header, 5);
  const cipher = createCipheriv(algorithm, key, header.subarray(5), { authTagLength: tagBytes });
  cipher.setAAD(associated(binding, number));
  return Buffer.concat([header, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
}

function openWith({ number, key }: NumberedKey, binding: Binding, sealed: Buffer): string {
  const decipher = createDecipheriv(algorithm, key, sealed.subarray(5, headerBytes), { authTagLength: tagBytes });
  decipher.setAAD(associated(binding, number));
  decipher.setAuthTag(sealed.subarray(-tagBytes));
  try {
    return decipher.update(sealed.subarray(headerBytes, -tagBytes), undefined, "utf8") + decipher.final("utf8");
  } catch {
    throw new VaultRefused(
      "A secret of the database does not open with the key file. Restore the key file that belongs to this database.",
    );
  }
}

// JSON keeps the parts distinct, whatever they contain.
function associated(binding: Binding, number: number): Buffer {
  return Buffer.from(JSON.stringify(["berth", binding.projectId, binding.name, number]));
}

/** Reads the file again after it was replaced, so that a rotation reaches running processes. */
function watchedKeyring(file: string): () => Keyring {
  let stamp = "";
  let keyring: Keyring | undefined;
  return () => {
    const { mtimeMs, ino } = statSync(file);
    const seen = `${mtimeMs}:${ino}`;
    if (!keyring || seen !== stamp) keyring = readKeyring(file);
    stamp = seen;
    return keyring;
  };
}
