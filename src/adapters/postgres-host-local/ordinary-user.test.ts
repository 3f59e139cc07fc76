import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { join } from "node:path";
import { checkoutFor } from "../../../test/e2e/platform.ts";
import { drawCases } from "../../../test/support/draw-cases.ts";
import { run } from "../../kit/exec.ts";
import { missingPart } from "./test-fixture.ts";
import { failuresIn } from "../../../test/support/inner-tests.ts";
import { guardMs } from "../../../test/support/eventually.ts";

// Drawn with other ordinary user files: the same rules are shown by the user who runs the tests in every run.

// The uid of `nobody` on Debian and most other systems: a user without rights and home.
const nobody = 65_534;
const notRoot = process.getuid?.() !== 0 && "these tests are run by an ordinary user already";
const names = ["local-postgres-host.test.ts", "survival.test.ts"];

describe("local PostgreSQL instances of an ordinary user", { skip: missingPart || notRoot }, () => {
  const ways = [
    ["in a sandbox", "0"],
    ["without bubblewrap", "1"],
  ] as const;
  for (const [how, plain] of drawCases(ways, 1)) {
    it(`keep every rule ${how}`, async () => {
      const { here, node } = checkoutFor(nobody);
      const files = names.map((name) => join(here, "src/adapters/postgres-host-local", name));
      const env = { PATH: "/usr/bin:/bin", BERTH_TEST_PLAIN: plain };
      const result = await run(
        { file: node, args: ["--test", ...files] },
        { uid: nobody, gid: nobody, env, timeoutMs: 2 * guardMs },
      );
      assert.equal(result.exitCode, 0, failuresIn(result.stdout));
    });
  }
});
