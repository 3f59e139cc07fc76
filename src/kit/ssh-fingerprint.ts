import { createHash } from "node:crypto";

/** The fingerprint of a public key in base64, as OpenSSH shows it. */
export function sshFingerprint(key: string): string {
  const digest = createHash("sha256").update(Buffer.from(key, "base64")).digest("base64");
  return `SHA256:${digest.replace(/=+$/, "")}`;
}

/** The fingerprint of the first line of known_hosts(5); null where there is none. */
export function fingerprintOf(hostKeys: string | null): string | null {
  const key = hostKeys?.split("\n")[0]?.split(" ")[2];
  return key === undefined ? null : sshFingerprint(key);
}
