import assert from "node:assert/strict";
import { chmodSync, chownSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { checkoutFor } from "../../../test/e2e/platform.ts";
import { drawCases } from "../../../test/support/draw-cases.ts";
import { run, systemPath, type Command } from "../../kit/exec.ts";
import { asUserWithTun, pastaLacks } from "../../../test/support/open-tun.ts";
import { testParts } from "../../../test/support/sandbox-parts.ts";
import { failuresIn } from "../../../test/support/inner-tests.ts";
import { eventually, guardMs } from "../../../test/support/eventually.ts";
import { testFolder } from "../../../test/support/test-folder.ts";

// Drawn with other ordinary user files: the same rules are shown by the user who runs the tests in every run.

const nobody = 65_534;
const parts = testParts();
const lacks =
  process.geteuid?.() !== 0
    ? "these tests become another user, so they need root"
    : parts.setpriv
      ? false
      : "setpriv is not installed";
const names = ["process-runtime.test.ts", "survival.test.ts"];

const readText = (path: string): string => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
};

describe("an ordinary user's process runtime", { skip: lacks }, () => {
  const home = testFolder("nobody");
  before(() => {
    chmodSync(home, 0o700);
    chownSync(home, nobody, nobody);
  });

  const asNobody = ({ file, args }: Command): Command => {
    const id = String(nobody);
    const words = ["--reuid", id, "--regid", id, "--clear-groups", "--", file, ...args];
    return { file: parts.setpriv as string, args: words };
  };
  const testing = (): Command => {
    const { here, node } = checkoutFor(nobody);
    return { file: node, args: ["--test", ...names.map((name) => join(here, "src/adapters/runtime-process", name))] };
  };
  const runTests = async (command: Command, expected: Record<string, string> = {}) => {
    const env = { PATH: systemPath, HOME: home, TMPDIR: home, ...expected };
    const result = await run(command, { env, timeoutMs: 2 * guardMs });
    assert.equal(result.exitCode, 0, failuresIn(result.stdout));
    // A killed process disappears once the kernel has scheduled it again.
    await eventually(() => leftOver().length === 0, "nothing is left").catch(() => assert.deepEqual(leftOver(), []));
  };
  /** Returns the command lines of running processes that mention the tests' folder. */
  const leftOver = () =>
    readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => [readText(`/proc/${pid}/cmdline`), readText(`/proc/${pid}/environ`)].join("\0"))
      .filter((text) => text.includes(home))
      .map((text) => text.split("\0").slice(0, 8).join(" "));
  const ways = [
    ["without root", false, () => runTests(asNobody(testing()))],
    [
      "with a network namespace by pasta",
      pastaLacks,
      () => runTests(asUserWithTun(nobody, testing()), { BERTH_TEST_NETWORK: "pasta" }),
    ],
  ] as const;
  for (const [how, skip, runThem] of drawCases(ways, 1)) it(`keeps every promise ${how}`, { skip }, runThem);
});
