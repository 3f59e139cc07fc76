import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLog } from "../../kit/log.ts";
import { runCheck, overall, type Check } from "./check.ts";

const check = (look: Check["look"], more: Partial<Check> = {}): Check => ({
  name: "thing",
  scope: "machine",
  patience: { warnMs: 0, failMs: 0 },
  look,
  ...more,
});
const never = () => new Promise<never>(() => {});

test("a look that throws is unknown, says nothing about subjects, and repeats nothing of the fault", async () => {
  const failing = check(async () => {
    throw new Error("connect to /secret/path failed");
  });
  const report = await runCheck(failing, "host", silentLog);
  assert.deepEqual([report.findings[0]?.status, report.partial], ["unknown", true]);
  assert.doesNotMatch(JSON.stringify(report), /secret/);
});

test("a look that takes too long is unknown and told to end", async () => {
  let ended: AbortSignal | undefined;
  const hanging = check((signal) => ((ended = signal), never()), { timeoutMs: 20 });
  const report = await runCheck(hanging, "host", silentLog);
  assert.equal(report.findings[0]?.status, "unknown");
  assert.equal(ended?.aborted, true);
});

test("a look that takes too long is what the check says it means", async () => {
  const hanging = check(never, { timeoutMs: 20, tooLong: overall("fail", "It hangs.") });
  assert.deepEqual((await runCheck(hanging, "host", silentLog)).findings, [overall("fail", "It hangs.")]);
});

test("what all machines share is reported without a machine", async () => {
  const look = async () => [overall("ok", "fine")];
  assert.equal((await runCheck(check(look), "host", silentLog)).machine, "host");
  assert.equal((await runCheck(check(look, { scope: "shared" }), "host", silentLog)).machine, "");
});
