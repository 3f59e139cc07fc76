import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { findHaproxy } from "./find-haproxy.ts";

for (const [version, isNewEnough] of [
  ["1.8.30", false],
  ["2.2.9-2+deb11u6", false],
  ["2.6.12-1+deb12u2", true],
  ["3.0.1", true],
] as const) {
  test(`HAProxy ${version} is ${isNewEnough ? "used" : "left alone"}`, async () => {
    const folder = await mkdtemp(join(tmpdir(), "berth-haproxy-version-"));
    const file = join(folder, "haproxy");
    await writeFile(file, `#!/bin/sh\necho "HAProxy version ${version} 2023/12/16 - https://haproxy.org/"\n`, {
      mode: 0o755,
    });
    assert.equal(await findHaproxy([null, join(folder, "missing"), file]), isNewEnough ? file : null);
    await rm(folder, { recursive: true });
  });
}
