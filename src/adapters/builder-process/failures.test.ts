// Drawn with other builder files: its rules are its own, and .ci/run shows them with every change.
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { after, before, describe, it } from "node:test";
import { drawCases } from "../../../test/support/draw-cases.ts";
import { attempt, type SourceFiles } from "../../ports/builder.suite.ts";
import type { BuildRequest } from "../../ports/builder.ts";
import type { BuilderFailureCode } from "../../detection/failures.ts";
import type { ProcessBuilderOptions } from "./process-builder.ts";
import type { MachineLanguages } from "./tools/machine-languages.ts";
import {
  makeTestBuilder,
  noLanguages,
  withoutRegistry,
  type TestBuilder,
} from "../../../test/support/process-builder.ts";

interface Mistake {
  readonly code: BuilderFailureCode;
  readonly when: string;
  readonly files: SourceFiles;
  readonly request?: Partial<BuildRequest>;
  readonly options?: Partial<ProcessBuilderOptions>;
  readonly needsRegistry?: boolean;
  /** The language that the machine needs for this case. */
  readonly needs?: keyof MachineLanguages;
  readonly says?: RegExp;
}

const limits = { memoryBytes: 2 * 1024 ** 3, processes: 512, timeoutMs: 600_000, silenceMs: 300_000 };
const json = (value: unknown) => JSON.stringify(value);
const script = (text: string): SourceFiles => ({
  "package.json": json({ scripts: { build: "node build.js", start: "node ." } }),
  "build.js": text,
});
const depends = (dependencies: object, more: object = {}): SourceFiles => ({
  "package.json": json({ scripts: { start: "node ." }, dependencies, ...more }),
});
const locked = (version: string, integrity: string) =>
  json({
    ...{ lockfileVersion: 3, requires: true },
    packages: { "": { dependencies: { "is-number": version } }, "node_modules/is-number": { version, integrity } },
  });
const unreachable = { packageEnv: { npm_config_registry: "http://127.0.0.1:9/", npm_config_fetch_retries: "0" } };

const mistakes: readonly Mistake[] = [
  { code: "nothing_to_run", when: "nothing is known", files: { "README.md": "" } },
  {
    code: "dockerfile_not_supported",
    when: "only a Dockerfile tells what to run",
    files: { Dockerfile: "FROM scratch" },
  },
  {
    code: "procfile_invalid",
    when: "a Procfile line is no command",
    files: { Procfile: "node server.js" },
    says: /Line 1/,
  },
  { code: "no_start_command", when: "a Procfile has only a release command", files: { Procfile: "release: ./work" } },
  { code: "no_start_command", when: "a package.json has neither start nor server", files: { "package.json": "{}" } },
  {
    code: "no_start_command",
    when: "a Go module has no main package",
    files: { "go.mod": "module x", "x.go": "package x" },
  },
  { code: "package_json_invalid", when: "package.json is broken", files: { "package.json": "{" } },
  {
    code: "pyproject_invalid",
    when: "pyproject.toml is broken",
    files: { "pyproject.toml": "[project]\nname =", "main.py": "" },
    says: /pyproject\.toml/,
  },
  {
    code: "python_version_unavailable",
    when: "another Python is required",
    files: { "pyproject.toml": '[project]\nname = "x"\nrequires-python = "<3"' },
    says: /<3/,
  },
  {
    code: "python_missing",
    when: "there is no Python",
    files: { "requirements.txt": "" },
    options: { pythonBin: null },
  },
  { code: "go_missing", when: "there is no Go", files: { "go.mod": "module x" }, options: { goRoot: null } },
  {
    code: "go_version_unavailable",
    when: "go.mod asks for the future",
    files: { "go.mod": "module x\n\ngo 1.999\n", "main.go": "package main\nfunc main() {}\n" },
  },
  {
    code: "build_script_failed",
    when: "a Go program does not compile",
    // Go reports it before it compiles its own runtime.
    files: { "go.mod": "module x\n", "main.go": 'package main\nimport "nothing"\nfunc main() { nothing.Do() }\n' },
    says: /nothing/,
  },
  {
    code: "rust_missing",
    when: "there is no Rust",
    files: { "Cargo.toml": "" },
    options: { languages: noLanguages },
  },
  { code: "java_missing", when: "there is no Java", files: { "pom.xml": "" }, options: { languages: noLanguages } },
  {
    code: "java_version_unavailable",
    when: "a Java of the future is asked for",
    files: { "pom.xml": "<java.version>999</java.version>" },
    says: /requires Java 999; this machine has \d+/,
    needs: "maven",
  },
  {
    code: "manifest_invalid",
    when: "Cargo.toml is broken",
    files: { "Cargo.toml": "[package" },
    says: /Cargo\.toml is not valid TOML/,
    needs: "rustRoot",
  },
  {
    code: "lock_out_of_sync",
    when: "Cargo.lock is older than Cargo.toml",
    files: {
      "Cargo.toml": `[package]\nname = "x"\nversion = "0.2.0"\nedition = "2021"\n`,
      "Cargo.lock": `version = 3\n\n[[package]]\nname = "x"\nversion = "0.1.0"\n`,
      "src/main.rs": "fn main() {}",
    },
    needs: "rustRoot",
  },
  {
    code: "build_script_failed",
    when: "a Rust program does not compile",
    files: {
      "Cargo.toml": `[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n`,
      "src/main.rs": "fn main() { nothing() }",
    },
    says: /error\[E0425\]: cannot find function `nothing`/,
    needs: "rustRoot",
  },
  {
    code: "node_version_unavailable",
    when: "no such Node exists",
    files: { ...depends({}), ".nvmrc": "99" },
    needsRegistry: true,
    says: /99 \(\.nvmrc\)/,
  },
  {
    code: "package_manager_unavailable",
    when: "no such package manager exists",
    files: depends({}, { packageManager: "pnpm@999.0.0" }),
    needsRegistry: true,
  },
  {
    code: "dependency_not_found",
    when: "a package does not exist",
    files: depends({ "berth-does-not-exist-anywhere": "1" }),
    needsRegistry: true,
    says: /berth-does-not-exist-anywhere/,
  },
  {
    code: "dependency_not_found",
    when: "a version does not exist",
    files: depends({ "is-number": "99.0.0" }),
    needsRegistry: true,
    says: /is-number@99/,
  },
  {
    code: "dependency_not_found",
    when: "a Python package's version does not exist",
    files: { "requirements.txt": "itsdangerous==99\n", "main.py": "" },
    needsRegistry: true,
  },
  {
    code: "lock_out_of_sync",
    when: "the lock file is older than package.json",
    files: { ...depends({ "is-number": "7.0.0" }), "package-lock.json": locked("6.0.0", "") },
    needsRegistry: true,
  },
  {
    ...{ code: "lock_integrity_mismatch", when: "a package differs from the lock file's", needsRegistry: true },
    files: { ...depends({ "is-number": "7.0.0" }), "package-lock.json": locked("7.0.0", `sha512-${"A".repeat(86)}==`) },
  },
  {
    code: "registry_unreachable",
    when: "the registry is down",
    files: depends({ "is-number": "7.0.0" }),
    options: unreachable,
  },
  {
    code: "build_script_failed",
    when: "the build script fails",
    files: script(`console.error("Error: no such planet"); process.exit(3)`),
    says: /exit code 3: Error: no such planet/,
  },
  {
    code: "build_output_missing",
    when: "the build makes nothing",
    files: { "package.json": json({ scripts: { build: "true" } }) },
  },
  {
    code: "build_silent",
    when: "the build hangs",
    files: script("setTimeout(() => {}, 60000)"),
    request: { limits: { ...limits, silenceMs: 1500 } },
  },
  {
    code: "build_timeout",
    when: "the build never ends",
    files: script(`setInterval(() => console.log("busy"), 50)`),
    request: { limits: { ...limits, timeoutMs: 3000 } },
  },
  {
    ...{
      code: "build_out_of_memory",
      when: "the build takes all memory",
      request: { limits: { ...limits, memoryBytes: 200 * 1024 ** 2 } },
    },
    files: script("const all = []; for (let i = 0; i < 64; i += 1) all.push(Buffer.alloc(16 * 1024 * 1024, 1))"),
  },
  {
    code: "source_unreadable",
    when: "the source is no archive",
    files: {},
    request: { source: () => Readable.from([Buffer.alloc(2048, "x")]) },
  },
  {
    code: "source_too_large",
    when: "the source is too large",
    files: { "index.html": "x".repeat(300_000) },
    options: { maxSourceBytes: 100_000 },
  },
  {
    code: "procfile_command_missing",
    when: "the build does not make what the Procfile starts",
    files: { ...script(""), Procfile: "web: ./dist/server" },
    says: /dist\/server, which the build has not created/,
  },
  {
    code: "build_out_of_memory",
    when: "Node reaches its heap limit",
    files: script("const all = []; for (;;) all.push(new Array(100_000).fill(0).map(String))"),
    request: { limits: { ...limits, memoryBytes: 400 * 1024 ** 2 } },
    says: /heap limit of Node\.js, 300 MiB \(three quarters of the build's 400 MiB\)/,
  },
  {
    code: "build_output_too_large",
    when: "the build leaves a sparse file of 12 TiB",
    files: script(`require("fs").writeFileSync("big", ""); require("fs").truncateSync("big", 12 * 1024 ** 4)`),
    says: /more than 4096 MiB/,
  },
  {
    code: "build_output_too_large",
    when: "an install leaves one",
    files: {
      "package.json": json({
        scripts: { build: "true", preinstall: "mkdir -p node_modules; truncate -s 12T node_modules/big" },
        dependencies: { "is-number": "7.0.0" },
      }),
      "package-lock.json": locked("7.0.0", ""),
    },
    needsRegistry: true,
  },
  {
    code: "build_output_too_large",
    when: "the build takes too much of the disk while it runs",
    files: script(
      `require("fs").writeFileSync("/tmp/big", Buffer.alloc(200 * 1024 ** 2, 1)); setInterval(() => console.log("on"), 100)`,
    ),
    options: { buildDiskBytes: 128 * 1024 ** 2 },
    says: /took more than 128 MiB of the disk while it ran/,
  },
  {
    code: "build_output_too_large",
    when: "the build leaves more files than an image may hold",
    files: script(
      `require("fs").mkdirSync("d"); for (let i = 0; i < 3000; i += 1) require("fs").writeFileSync("d/" + i, "")`,
    ),
    options: { imageLimits: { entries: 2000, bytes: 1024 ** 3 } },
    says: /2000 files/,
  },
  {
    code: "build_output_too_large",
    when: "the build leaves a path too long to be named",
    files: script(
      `for (let i = 0; i < 60; i += 1) { require("fs").mkdirSync("d".repeat(200)); process.chdir("d".repeat(200)); }`,
    ),
    says: /4096 bytes/,
  },
];

describe("every mistake has its code, its sentence and what to do", () => {
  let plain: TestBuilder;
  before(async () => {
    plain = await makeTestBuilder();
  });
  after(() => plain.close());

  for (const mistake of drawCases(mistakes, 8)) {
    it(
      `${mistake.code}: ${mistake.when}`,
      { skip: mistake.needsRegistry === true ? withoutRegistry : false },
      async (t) => {
        if (mistake.code.startsWith("go_version") && plain.options.goRoot === null) return t.skip("SKIPPED: no go");
        const { languages } = plain.options;
        if (mistake.needs !== undefined && languages[mistake.needs] === null)
          return t.skip(`SKIPPED: no ${mistake.needs}`);
        const test = mistake.options === undefined ? plain : await makeTestBuilder(mistake.options);
        const { outcome, lines } = await attempt(test.builder, mistake.files, { limits, ...mistake.request });
        if (test !== plain) await test.close();
        assert.ok(outcome.outcome === "failed", JSON.stringify(outcome));
        const { failure } = outcome;
        assert.equal(failure.code, mistake.code, lines.join("\n"));
        if (mistake.says) assert.match(failure.summary, mistake.says);
        assert.ok(failure.hint.length > 10);
        assert.ok(failure.log_tail.length <= 30);
        assert.ok(lines.includes(` !     ${failure.summary}`), lines.join("\n"));
      },
    );
  }
});
