import assert from "node:assert/strict";
import { mkdtempSync, rmdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { runOk } from "../../kit/exec.ts";
import { appendStep, beginSteps, readSteps } from "./steps.ts";

const skip = process.getuid?.() !== 0 && "only root can mount a small disk";

test("an upgrade that filled the disk to the last byte still says why it failed", { skip }, async (t) => {
  const disk = mkdtempSync(join(tmpdir(), "berth-steps-"));
  await runOk({ file: "mount", args: ["-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", disk] });
  t.after(async () => {
    await runOk({ file: "umount", args: ["--lazy", disk] });
    rmdirSync(disk);
  });
  const file = join(disk, "steps");
  const request = { source: null, without_backup: true, from: "0.1.0", service: null };
  beginSteps(file, request);
  assert.throws(() => writeFileSync(join(disk, "ballast"), Buffer.alloc(2 << 20)), { code: "ENOSPC" });
  // Longer than what is left of the file's own last block.
  appendStep(file, { step: "failed", reason: "x".repeat(5000) });
  assert.deepEqual(
    readSteps(file).map(({ step }) => step),
    ["requested", "failed"],
  );
  assert.throws(() => beginSteps(file, request), { code: "ENOSPC" });
  assert.equal(readSteps(file).length, 2, "a refused upgrade leaves the one before as it is");
});
