import assert from "node:assert/strict";
import { test } from "node:test";
import ssh2, { type AuthContext, type ParsedKey } from "ssh2";
import { authenticate } from "./authenticate.ts";
import type { GitGate } from "./gate.ts";

const gate = { authenticateKey: async () => [{ id: "key_1" }] } as unknown as GitGate;
const key = ssh2.utils.parseKey(ssh2.utils.generateKeyPairSync("rsa", { bits: 2048 }).private) as ParsedKey;
const blob = Buffer.from("the session and the request");

/** Signs in with an RSA signature over this text and with this hash; undefined is SHA-1. */
function signIn(hashAlgo: "sha256" | "sha512" | undefined, signed = blob) {
  const attempt = { method: "publickey", username: "git", key: { algo: "ssh-rsa", data: key.getPublicSSH() } };
  const signature = key.sign(signed, hashAlgo);
  return authenticate(gate, { ...attempt, blob, signature, hashAlgo } as unknown as AuthContext);
}

test("an RSA key signs in with SHA-2 over this session alone, and never with SHA-1", async () => {
  for (const hash of ["sha256", "sha512"] as const) {
    assert.deepEqual(Object.keys((await signIn(hash)) ?? {}), ["fingerprint", "callers"], hash);
    assert.equal(await signIn(hash, Buffer.from("another session")), null);
  }
  assert.equal(await signIn(undefined), null);
});
