import { randomBytes } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import ssh2 from "ssh2";
import { fingerprintOf } from "./authenticate.ts";

/**
 * Reads this host's ed25519 key (OpenSSH format, mode 0600); creates it if missing. Two processes that start at once end up with the same
 * key, and a crash never leaves a partial file.
 */
export async function readHostKey(file: string): Promise<string> {
  const found = await readFile(file, "utf8").catch(() => null);
  if (found !== null) return found;
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${randomBytes(4).toString("hex")}`;
  const key = newKey();
  await writeFile(draft, key.private, { mode: 0o600 });
  try {
    await link(draft, file);
    await writeFile(`${file}.pub`, `${key.public}\n`, { mode: 0o644 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    await rm(draft, { force: true });
  }
  return readFile(file, "utf8");
}

// Generates keys until ssh2 can read one: of 3000 keys that ssh2 wrote, it could not read 9, and storing such a key would make every start
// fail.
function newKey(): ReturnType<typeof ssh2.utils.generateKeyPairSync> {
  for (;;) {
    const key = ssh2.utils.generateKeyPairSync("ed25519", { comment: "berth" });
    if (!(ssh2.utils.parseKey(key.private) instanceof Error)) return key;
  }
}

/** Returns the fingerprint that OpenSSH shows for an unknown host key: `SHA256:…`. */
export function hostKeyFingerprint(hostKey: string): string {
  const key = ssh2.utils.parseKey(hostKey);
  if (key instanceof Error) throw key;
  return fingerprintOf(key.getPublicSSH());
}
