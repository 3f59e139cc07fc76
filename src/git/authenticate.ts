import { createHash } from "node:crypto";
import ssh2, { type AuthContext, type PublicKeyAuthContext } from "ssh2";
import type { GitCaller, GitGate } from "./gate.ts";

/** An SSH key whose owner has proved possession of it. */
export interface SshIdentity {
  readonly fingerprint: string;
  readonly callers: readonly GitCaller[];
}

/** Handles one authentication attempt: user `git`, public keys only. A known key merely offered gets "offered"; a signature the identity. */
export async function authenticate(gate: GitGate, ctx: AuthContext): Promise<SshIdentity | "offered" | null> {
  if (ctx.method !== "publickey" || ctx.username !== "git") return null;
  const fingerprint = fingerprintOf(ctx.key.data);
  const callers = await gate.authenticateKey(fingerprint);
  if (callers.length === 0) return null;
  if (ctx.signature === undefined) return "offered";
  return isSignedBy(ctx) ? { fingerprint, callers } : null;
}

function isSignedBy(ctx: PublicKeyAuthContext): boolean {
  const key = ssh2.utils.parseKey(`${ctx.key.algo} ${ctx.key.data.toString("base64")}`);
  if (key instanceof Error || ctx.blob === undefined || ctx.signature === undefined) return false;
  // If the client names no hash, an RSA signature uses SHA-1, which is broken.
  if (key.type === "ssh-rsa" && ctx.hashAlgo === undefined) return false;
  // `verify` returns an Error instead of throwing when it can't parse the signature.
  return (key.verify(ctx.blob, ctx.signature, ctx.hashAlgo) as unknown) === true;
}

/** Returns OpenSSH's fingerprint of a key blob: `SHA256:` and base64 without padding. */
export function fingerprintOf(keyBlob: Buffer): string {
  return `SHA256:${createHash("sha256").update(keyBlob).digest("base64").replace(/=+$/, "")}`;
}
