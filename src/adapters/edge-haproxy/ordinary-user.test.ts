// In every run: the edge of an ordinary user keeps every promise that root's keeps.
import assert from "node:assert/strict";
import { chownSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { checkoutFor } from "../../../test/e2e/platform.ts";
import { failuresIn } from "../../../test/support/inner-tests.ts";
import { guardMs } from "../../../test/support/eventually.ts";
import { testFolder } from "../../../test/support/test-folder.ts";
import { run, systemPath } from "../../kit/exec.ts";
import { withoutHaproxy } from "../../../test/support/haproxy.ts";

const nobody = 65_534;
const skip = withoutHaproxy || (process.getuid?.() !== 0 && "this test becomes another user, so it needs root");

test("an ordinary user's HAProxy passes the whole suite of the edge, plain and over TLS", { skip }, async () => {
  const home = testFolder("nobody");
  chownSync(home, nobody, nobody);
  const { here, node } = checkoutFor(nobody);
  const args = ["--test", join(here, "src/adapters/edge-haproxy/haproxy-edge.test.ts")];
  const env = { PATH: systemPath, HOME: home, TMPDIR: home };
  const options = { cwd: here, uid: nobody, gid: nobody, env, timeoutMs: 2 * guardMs };
  const { exitCode, stdout } = await run({ file: node, args }, options);
  assert.equal(exitCode, 0, failuresIn(stdout));
  assert.match(stdout, /^. fail 0$[\s\S]*^. skipped 0$/m);
});
