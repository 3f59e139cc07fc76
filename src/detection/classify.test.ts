import assert from "node:assert/strict";
import { test } from "node:test";
import type { BuilderFailureCode } from "./failures.ts";
import type { Step, Tool } from "./plan.ts";
import { classify, tellingLine } from "./classify.ts";

const step = (tool: Tool): Step => ({
  title: "",
  stage: "install",
  args: [tool],
  env: {},
  tool,
  otherwise: "install_failed",
});

// Outputs of the real programs.
const sayings: readonly (readonly [Tool, string, BuilderFailureCode])[] = [
  [
    "npm",
    "npm error code EUSAGE\nnpm error\nnpm error `npm ci` can only install packages when your package.json and package-lock.json are in sync.",
    "lock_out_of_sync",
  ],
  ["npm", "npm error code E404\nnpm error 404 Not Found - GET https://example.org/nope", "dependency_not_found"],
  ["npm", "npm error code ETARGET\nnpm error notarget No matching version found for a@9", "dependency_not_found"],
  [
    "npm",
    "npm error code ENOTFOUND\nnpm error network request to https://example.org/a failed",
    "registry_unreachable",
  ],
  ["npm", "npm error code EINTEGRITY", "lock_integrity_mismatch"],
  ["npm", "npm error gyp ERR! build error\nnpm error gyp ERR! not ok", "native_build_failed"],
  ["npm", "npm error code 1\nnpm error path /app/node_modules/x", "install_failed"],
  [
    "npm",
    "npm error code 128\nnpm error An unknown git error occurred\nnpm error git@example.org: Permission denied (publickey).",
    "dependency_not_found",
  ],
  ["pnpm", ' ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with "frozen-lockfile"', "lock_out_of_sync"],
  ["pnpm", " ERR_PNPM_FETCH_404  GET https://example.org/nope: Not Found - 404", "dependency_not_found"],
  ["yarn", "error Your lockfile needs to be updated, but yarn was run with `--frozen-lockfile`.", "lock_out_of_sync"],
  [
    "yarn",
    "➤ YN0028: │ The lockfile would have been modified by this install, which is explicitly forbidden.",
    "lock_out_of_sync",
  ],
  ["yarn", 'error Couldn\'t find any versions for "a" that matches "9"', "dependency_not_found"],
  [
    "pip",
    "ERROR: Could not find a version that satisfies the requirement a==9\nERROR: No matching distribution found for a==9",
    "dependency_not_found",
  ],
  [
    "pip",
    "ERROR: Ignored the following versions that require a different python version: 6.0.1 Requires-Python >=3.12; 6.1 Requires-Python >=3.12; 6.1a1 Requires-Python >=3.12\nERROR: Could not find a version that satisfies the requirement Django<6.2,>=6.1 (from versions: 1.1.3, 5.2.9)\nERROR: No matching distribution found for Django<6.2,>=6.1",
    "python_version_unavailable",
  ],
  [
    "pip",
    "ERROR: Ignored the following versions that require a different python version: 6.1 Requires-Python >=3.12\nERROR: Could not find a version that satisfies the requirement Django==61 (from versions: 5.2.9)\nERROR: No matching distribution found for Django==61",
    "dependency_not_found",
  ],
  [
    "pip",
    "WARNING: Retrying … NewConnectionError … \nERROR: No matching distribution found for a",
    "registry_unreachable",
  ],
  ["pip", "error: command '/usr/bin/gcc' failed with exit code 1", "native_build_failed"],
  ["pip", "Error: Command '[...ensurepip...]' … ensurepip is not available", "python_missing"],
  [
    "cargo",
    "error: cannot update the lock file /app/Cargo.lock because --locked was passed to prevent this",
    "lock_out_of_sync",
  ],
  ["cargo", "error: the lock file /app/Cargo.lock needs to be updated but --locked was passed", "lock_out_of_sync"],
  [
    "cargo",
    "error: no matching package named `nope` found\nlocation searched: crates.io index",
    "dependency_not_found",
  ],
  ["cargo", 'error: failed to select a version for the requirement `itoa = "^99"`', "dependency_not_found"],
  ["cargo", "error: rustc 1.80.0 is not supported by the following package:", "rust_version_unavailable"],
  [
    "cargo",
    "warning: spurious network error (3 tries remaining): [6] Could not resolve hostname (Could not resolve host: index)",
    "registry_unreachable",
  ],
  ["cargo", "error: linker `cc` not found", "native_build_failed"],
  [
    "pip",
    "pyproject.toml changed significantly since poetry.lock was last generated. Run `poetry lock` to fix the lock file.",
    "lock_out_of_sync",
  ],
  ["bun", "error: lockfile had changes, but lockfile is frozen", "lock_out_of_sync"],
  ["bun", "error: GET https://example.org/nope - 404", "dependency_not_found"],
  ["bun", 'error: No version matching "99" found for specifier "hono" (but package exists)', "dependency_not_found"],
  ["deno", "error: The lockfile is out of date. Run `deno install --frozen=false`", "lock_out_of_sync"],
  ["deno", "error: npm package 'berth-nope' does not exist.", "dependency_not_found"],
  ["java", "[ERROR] Fatal error compiling: error: release version 99 not supported", "java_version_unavailable"],
  [
    "java",
    "[ERROR] Could not transfer artifact a:b:pom:1 from/to central (https://example.org): example.org: Unknown host",
    "registry_unreachable",
  ],
  ["java", "[ERROR] Could not find artifact org.example:nope:jar:1 in central", "dependency_not_found"],
  [
    "java",
    'Exception in thread "main" java.net.UnknownHostException: example.org\n\tat a.b(C.java:1)\n\tat org.gradle.wrapper.Download.x(D.java:1)',
    "package_manager_unavailable",
  ],
  ["java", "[ERROR] COMPILATION ERROR :", "install_failed"],
  ["go", "go: go.mod requires go >= 1.99 (running go 1.22.1; GOTOOLCHAIN=local)", "go_version_unavailable"],
  ["go", "main.go:3:8: no required module provides package example.org/x", "dependency_not_found"],
  ["go", "missing go.sum entry for module providing package x", "lock_out_of_sync"],
  [
    "script",
    "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
    "build_out_of_memory",
  ],
  ["script", "Error: ENOSPC: no space left on device, write", "disk_full"],
];

for (const [tool, text, code] of sayings) {
  test(`${tool}: ${text.split("\n").at(-1)?.slice(0, 60)} is ${code}`, () =>
    assert.equal(classify(step(tool), text), code));
}

test("the telling line is the first that names an error, without npm's frame", () => {
  assert.equal(
    tellingLine("npm warn error x\nnpm error code E404\nnpm error 404 Not Found - nope\n"),
    "404 Not Found - nope",
  );
  assert.equal(
    tellingLine("ok\nsrc/a.ts(1,2): error TS2304: Cannot find name 'x'."),
    "src/a.ts(1,2): error TS2304: Cannot find name 'x'.",
  );
  assert.equal(tellingLine('throw new Error("x")\n^\nError: x\n  at y'), "Error: x");
  assert.equal(
    tellingLine(
      "> Build error occurred\nError: Build failed with 2 errors:\n[next]/font.css\nError: next/font: error:\nFailed to fetch Geist.\n",
    ),
    "Failed to fetch Geist.",
  );
  const next =
    "⨯ Failed to patch lockfile\n[TypeError: no os]\nFailed to compile.\n\nsrc/a.tsx\nFailed to fetch `Geist`.\n";
  assert.equal(tellingLine(next), "Failed to fetch `Geist`.");
  assert.equal(
    tellingLine("npm error code ETARGET\nnpm error notarget No matching version found for a@9.\n"),
    "No matching version found for a@9.",
  );
  assert.equal(
    tellingLine(
      "ERROR: Could not find a version that satisfies the requirement a==9 (from versions: 1, 2)\nERROR: No matching distribution found for a==9",
    ),
    "No matching distribution found for a==9",
  );
  assert.equal(tellingLine("Error: it failed:\n"), "Error: it failed:");
  assert.equal(tellingLine("all is well"), null);
});
