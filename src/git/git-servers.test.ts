import assert from "node:assert/strict";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mock, test } from "node:test";
import ssh2 from "ssh2";
import { runOk } from "../kit/exec.ts";
import { hostKeyFingerprint, readHostKey } from "./git-servers.ts";

test("a key that ssh2 can't read is never stored; the key is private and stays", async () => {
  const dir = await mkdtemp(join(tmpdir(), "berth-host-key-"));
  const file = join(dir, "key");
  const isReadable = (each: { private: string }) => !(ssh2.utils.parseKey(each.private) instanceof Error);
  // ssh2 itself writes about one in 300 keys that it cannot read.
  let readable = ssh2.utils.generateKeyPairSync("ed25519", { comment: "berth" });
  while (!isReadable(readable)) readable = ssh2.utils.generateKeyPairSync("ed25519", { comment: "berth" });
  const unreadable = { ...readable, private: readable.private.replace(/[A-Za-z0-9]{8}/, "AAAAAAAA") };
  assert.ok(!isReadable(unreadable));
  const made = [unreadable, unreadable, readable];
  const generate = mock.method(ssh2.utils, "generateKeyPairSync", () => made.shift());
  const key = await readHostKey(file);
  assert.equal(generate.mock.callCount(), 3);
  assert.equal(key, readable.private);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.equal(await readHostKey(file), key);
  const { stdout } = await runOk({ file: "ssh-keygen", args: ["-l", "-f", `${file}.pub`] });
  assert.equal(hostKeyFingerprint(key), stdout.split(" ")[1]);
  await rm(dir, { recursive: true });
});
