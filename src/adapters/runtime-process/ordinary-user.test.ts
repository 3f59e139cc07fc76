import assert from "node:assert/strict";
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { run, systemPath, type Command } from "../../kit/exec.ts";
import { findParts } from "./test-ground.ts";

const nobody = 65_534;
const parts = findParts();
const lacks =
  process.geteuid?.() !== 0
    ? "these tests become another user, so they need root"
    : parts.setpriv
      ? false
      : "setpriv is not installed";
const files = ["process-runtime.test.ts", "survival.test.ts"].map((name) => join(import.meta.dirname, name));

// Makes /dev/net/tun usable by everybody in a mount namespace of its own, as a machine set up for pasta has it.
const openTun =
  'mount -t tmpfs -o mode=0755 tun /mnt && mknod -m 666 /mnt/tun c 10 200 && mount --bind /mnt/tun /dev/net/tun && exec "$@"';

const isTunOpen = (): boolean => (statSync("/dev/net/tun").mode & 0o006) === 0o006;

describe("an ordinary user's process runtime", { skip: lacks }, () => {
  let home: string;
  before(() => {
    home = mkdtempSync(join(tmpdir(), "berth-nobody-"));
    chmodSync(home, 0o700);
    chownSync(home, nobody, nobody);
  });
  after(() => rmSync(home, { recursive: true, force: true }));

  const asNobody = (prefix: readonly string[], words: readonly string[]): Command => {
    const id = String(nobody);
    const [file, ...args] = [
      ...prefix,
      parts.setpriv as string,
      "--reuid",
      id,
      "--regid",
      id,
      "--clear-groups",
      "--",
      ...words,
    ] as [string, ...string[]];
    return { file, args };
  };
  const runTests = async (prefix: readonly string[]) => {
    const env = { PATH: systemPath, HOME: home, TMPDIR: home };
    const result = await run(asNobody(prefix, [process.execPath, "--test", ...files]), { env, timeoutMs: 240_000 });
    return { ...result, summary: result.stdout.slice(-6000) };
  };
  const canRead = async () =>
    (await run(asNobody([], [process.execPath, "--check", files[0] as string]))).exitCode === 0;

  it("keeps every promise without root", async (t) => {
    if (!(await canRead())) return t.skip("this checkout cannot be read by other users");
    const result = await runTests([]);
    assert.equal(result.exitCode, 0, result.summary);
  });

  it("keeps every promise with a network namespace by pasta", async (t) => {
    if (!parts.pasta) return t.skip("pasta is not installed");
    if (!existsSync("/dev/net/tun")) return t.skip("this machine has no /dev/net/tun");
    if (!isTunOpen() && process.env["BERTH_TEST_PASTA"] !== "1")
      return t.skip("/dev/net/tun is closed to ordinary users here; BERTH_TEST_PASTA=1 opens it for this test alone");
    if (!(await canRead())) return t.skip("this checkout cannot be read by other users");
    const result = await runTests(["unshare", "--mount", "--", "/bin/sh", "-c", openTun, "sh"]);
    assert.equal(result.exitCode, 0, result.summary);
  });
});
