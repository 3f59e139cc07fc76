import assert from "node:assert/strict";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import ssh2 from "ssh2";
import { runOk } from "../kit/exec.ts";
import { hostKeyFingerprint, readHostKey } from "./host-key.ts";

test("every key that is made can be read, is private, and stays", async () => {
  const dir = await mkdtemp(join(tmpdir(), "berth-host-key-"));
  // About one in 300 could not, before it was asked for another.
  for (let i = 0; i < 1500; i += 1) {
    const key = await readHostKey(join(dir, String(i)));
    assert.ok(!(ssh2.utils.parseKey(key) instanceof Error), key);
  }
  const file = join(dir, "0");
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.equal(await readHostKey(file), await readHostKey(file));
  const { stdout } = await runOk({ file: "ssh-keygen", args: ["-l", "-f", `${file}.pub`] });
  assert.equal(hostKeyFingerprint(await readHostKey(file)), stdout.split(" ")[1]);
  await rm(dir, { recursive: true });
});
