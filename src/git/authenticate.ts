import { createHash } from "node:crypto";
import ssh2, { type AuthContext, type PublicKeyAuthContext } from "ssh2";
import type { GitCaller, GitGate } from "./gate.ts";

/** A key that has proved itself. */
export interface SshIdentity {
  readonly fingerprint: string;
  readonly callers: readonly GitCaller[];
}

/**
 * Answers one attempt to authenticate: public keys only, for user `git` only. A key that is merely offered is accepted when it is
 * known, so that the client signs with it. The identity comes back only with a valid signature.
 */
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
  // Without a hash named by the client an RSA signature is SHA-1, which is broken.
  if (key.type === "ssh-rsa" && ctx.hashAlgo === undefined) return false;
  // verify answers with an Error object, not an exception, when the signature cannot be read.
  return (key.verify(ctx.blob, ctx.signature, ctx.hashAlgo) as unknown) === true;
}

/** OpenSSH's fingerprint of a key blob: `SHA256:` and base64 without padding. */
export function fingerprintOf(keyBlob: Buffer): string {
  return `SHA256:${createHash("sha256").update(keyBlob).digest("base64").replace(/=+$/, "")}`;
}
