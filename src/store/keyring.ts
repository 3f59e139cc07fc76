import { randomBytes } from "node:crypto";
import { linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { syncFolder } from "../kit/whole-file.ts";

/** The vault's keys by number. The current key seals; the others only open. */
export interface Keyring {
  readonly current: number;
  readonly keys: ReadonlyMap<number, Buffer>;
}

/** Thrown when the key file cannot be used; the message is a sentence for the operator. */
class KeyringRefused extends Error {
  override readonly name = "KeyringRefused";
}

const keyBytes = 32;

/** Creates the key file with a first key, unless it exists. Concurrent calls are safe: one wins, and both use its file. */
export function createKeyring(file: string): void {
  if (statSync(file, { throwIfNoEntry: false })) return;
  const temporary = writeBeside(file, { current: 1, keys: new Map([[1, randomBytes(keyBytes)]]) });
  try {
    linkSync(temporary, file);
    syncFolder(dirname(file));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** Reads the key file. Refuses a file that other users can read or that is damaged. */
export function readKeyring(file: string): Keyring {
  if ((statSync(file).mode & 0o077) !== 0)
    throw new KeyringRefused("Other users can read the key file. Run `chmod 600` on it.");
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(file, "utf8"));
  } catch {
    throw damaged();
  }
  const { current, keys } = parsed as { current?: unknown; keys?: Record<string, unknown> };
  const numbered = new Map(
    Object.entries(keys ?? {}).map(([number, text]) => [Number(number), Buffer.from(String(text), "base64")]),
  );
  if (typeof current !== "number" || !numbered.has(current)) throw damaged();
  if ([...numbered.values()].some((key) => key.length !== keyBytes)) throw damaged();
  return { current, keys: numbered };
}

export function addKey(file: string): Keyring {
  const { keys } = readKeyring(file);
  const number = Math.max(...keys.keys()) + 1;
  return replace(file, { current: number, keys: new Map([...keys, [number, randomBytes(keyBytes)]]) });
}

/** Removes keys that no sealed value uses any more. The current key always stays. */
export function dropKeys(file: string, numbers: readonly number[]): Keyring {
  const { current, keys } = readKeyring(file);
  return replace(file, {
    current,
    keys: new Map([...keys].filter(([number]) => number === current || !numbers.includes(number))),
  });
}

function replace(file: string, keyring: Keyring): Keyring {
  renameSync(writeBeside(file, keyring), file);
  // Secrets are sealed under the new key at once, so the renamed file must survive a power failure.
  syncFolder(dirname(file));
  return keyring;
}

/** Writes a complete, durable file in the same folder, ready to be renamed or linked into place. */
function writeBeside(file: string, keyring: Keyring): string {
  const temporary = join(dirname(file), `.${basename(file)}.${randomBytes(6).toString("hex")}`);
  const keys = Object.fromEntries([...keyring.keys].map(([number, key]) => [number, key.toString("base64")]));
  const text = `${JSON.stringify({ current: keyring.current, keys }, null, 2)}\n`;
  writeFileSync(temporary, text, { flag: "wx", mode: 0o600, flush: true });
  return temporary;
}

function damaged(): KeyringRefused {
  return new KeyringRefused(
    "The key file is damaged. Restore it from where you keep its copy; without it the sealed secrets are lost.",
  );
}
