import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { run } from "../../kit/exec.ts";
import { missingPart } from "./test-fixture.ts";

// On Debian and everywhere else the user `nobody`, which has no rights and no home.
const nobody = 65_534;
const notRoot = process.getuid?.() !== 0 && "these tests are run by an ordinary user already";
const files = ["local-postgres-host.test.ts", "survival.test.ts"].map(
  (name) => new URL(name, import.meta.url).pathname,
);

describe("local PostgreSQL instances of an ordinary user", { skip: missingPart || notRoot }, () => {
  for (const [how, plain] of [
    ["in a sandbox", "0"],
    ["without bubblewrap", "1"],
  ] as const) {
    it(`keep every rule ${how}`, async (test) => {
      const readable = await run(
        { file: process.execPath, args: ["--check", files[0] as string] },
        { uid: nobody, gid: nobody, cwd: "/" },
      ).catch(() => undefined);
      if (readable?.exitCode !== 0) return test.skip("an ordinary user cannot read this checkout or its Node");
      const env = { PATH: "/usr/bin:/bin", BERTH_TEST_PLAIN: plain };
      const result = await run(
        { file: process.execPath, args: ["--test", ...files] },
        { uid: nobody, gid: nobody, env, timeoutMs: 300_000 },
      );
      assert.equal(result.exitCode, 0, result.stdout.slice(-6000));
      return undefined;
    });
  }
});
