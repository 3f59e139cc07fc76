import { createHash } from "node:crypto";

/** Returns the fingerprint of a base64-encoded public key, as OpenSSH shows it. */
export function sshFingerprint(key: string): string {
  const digest = createHash("sha256").update(Buffer.from(key, "base64")).digest("base64");
  return `SHA256:${digest.replace(/=+$/, "")}`;
}

/** Returns the fingerprint of the first line of known_hosts(5); null when there is none. */
export function fingerprintOf(hostKeys: string | null): string | null {
  const key = hostKeys?.split("\n")[0]?.split(" ")[2];
  return key === undefined ? null : sshFingerprint(key);
}
