import assert from "node:assert/strict";
import { test } from "node:test";
import { describeSandbox, type SandboxFindings } from "./describe-sandbox.ts";

test("a part that is missing is told in one line, with the first line of what the machine said", () => {
  const findings = {
    containment: { found: { level: "isolated", switchesUser: true, layer: "overlay" }, isRoot: true, reason: "" },
    network: {
      driver: { mode: "shared", closesMetadata: true },
      reason: "nft: Could not process rule: Operation not supported\ntable ip berth {\n^^^^^",
      guessedResolvers: false,
    },
    groupParts: ["memory_limit", "process_limit", "cpu_limit"],
    hasFilter: true,
  } as unknown as SandboxFindings;
  const { missing } = describeSandbox(findings);
  assert.deepEqual(
    missing.map(({ part }) => part),
    ["network_namespace"],
  );
  assert.match(missing[0]?.remedy ?? "", /Operation not supported\)$/);
  assert.doesNotMatch(missing[0]?.remedy ?? "", /\n/);
});
