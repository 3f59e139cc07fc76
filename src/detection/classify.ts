import type { BuilderFailureCode } from "./failures.ts";
import { unfetchedWrapper } from "./java-plan.ts";
import type { Step, Tool } from "./plan.ts";
import { unreachable } from "./unreachable.ts";

interface Sign {
  readonly pattern: Pick<RegExp, "test">;
  readonly code: BuilderFailureCode;
}

const nodeGyp = /gyp ERR!|node-gyp.*(?:not ok|failed)/;

const madeForOtherPython = {
  // pip lists `6.1.2 Requires-Python >=3.12` among the ignored versions and then misses `Django<6.2,>=6.1`: a wanted version begins an ignored one.
  test(output: string): boolean {
    const ignored = /different python version: (.*)/i.exec(output)?.[1]?.split("; ") ?? [];
    const requirement = /satisfies the requirement (\S+)/.exec(output)?.[1] ?? "";
    const wanted = requirement.split(/[=~>]=|,/).slice(1);
    return ignored.some((each) => wanted.some((version) => `${each.split(" ")[0]}.`.startsWith(`${version}.`)));
  },
};

// Checked in order: a missing package also prints that the install failed, and an unreachable registry also prints that a package is missing.
const signs: Readonly<Record<Tool, readonly Sign[]>> = {
  npm: [
    {
      pattern:
        /code EUSAGE|can only install (?:packages )?(?:when|with)|are not in sync|Missing: \S+ from lock file|Invalid: lock file/,
      code: "lock_out_of_sync",
    },
    { pattern: /EINTEGRITY/, code: "lock_integrity_mismatch" },
    { pattern: unreachable, code: "registry_unreachable" },
    { pattern: /code (?:E404|ETARGET|ENOVERSIONS)|No matching version found/, code: "dependency_not_found" },
    { pattern: /unknown git error|Could not read from remote repository/, code: "dependency_not_found" },
    { pattern: nodeGyp, code: "native_build_failed" },
  ],
  pnpm: [
    {
      pattern:
        /ERR_PNPM_(?:OUTDATED_LOCKFILE|LOCKFILE_CONFIG_MISMATCH|FROZEN_LOCKFILE\w*|LOCKFILE_MISSING_DEPENDENCY|NO_LOCKFILE)/,
      code: "lock_out_of_sync",
    },
    { pattern: /ERR_PNPM_TARBALL_INTEGRITY/, code: "lock_integrity_mismatch" },
    { pattern: /ERR_PNPM_(?:FETCH_404|NO_MATCHING_VERSION\w*|NO_VERSIONS)/, code: "dependency_not_found" },
    { pattern: unreachable, code: "registry_unreachable" },
    { pattern: /ERR_PNPM_META_FETCH_FAIL/, code: "registry_unreachable" },
    { pattern: nodeGyp, code: "native_build_failed" },
  ],
  yarn: [
    {
      pattern: /lockfile needs to be updated|lockfile would have been (?:modified|created)|YN0028/,
      code: "lock_out_of_sync",
    },
    { pattern: /Integrity check failed|YN0018/, code: "lock_integrity_mismatch" },
    {
      pattern:
        /Couldn't find (?:package|any versions)|Not found"?\.?$|Response code: 404|YN0082|YN0016|: No candidates found/m,
      code: "dependency_not_found",
    },
    { pattern: unreachable, code: "registry_unreachable" },
    { pattern: /trouble with your network|RequestError/, code: "registry_unreachable" },
    { pattern: nodeGyp, code: "native_build_failed" },
  ],
  bun: [
    { pattern: /lockfile (?:had changes, but lockfile is frozen|is frozen)/, code: "lock_out_of_sync" },
    { pattern: /[Ii]ntegrity ?[Cc]heck ?[Ff]ailed/, code: "lock_integrity_mismatch" },
    {
      pattern: /ConnectionRefused|ConnectionClosed|FailedToOpenSocket|DNSResolve|UNABLE_TO_GET_ISSUER_CERT/,
      code: "registry_unreachable",
    },
    { pattern: /- 404\b|No version matching|failed to resolve/, code: "dependency_not_found" },
    { pattern: nodeGyp, code: "native_build_failed" },
  ],
  deno: [
    { pattern: /The lockfile is out of date/, code: "lock_out_of_sync" },
    { pattern: /Integrity check failed|(?:Tarball )?checksum did not match/i, code: "lock_integrity_mismatch" },
    {
      pattern: /error sending request|dns error|client error \(Connect\)|Import '[^']*' failed: error/,
      code: "registry_unreachable",
    },
    {
      pattern: /does not exist|Could not find (?:npm package|version|a matching)|Could not resolve|404 Not Found/,
      code: "dependency_not_found",
    },
  ],
  pip: [
    {
      pattern:
        /NewConnectionError|Failed to fetch: `|Name or service not known|Temporary failure in name resolution|ConnectionResetError|ProxyError|ConnectTimeoutError|ReadTimeoutError|SSLCertVerificationError/,
      code: "registry_unreachable",
    },
    {
      pattern: /do not match the hashes|THESE PACKAGES DO NOT MATCH|Hash mismatch for/,
      code: "lock_integrity_mismatch",
    },
    {
      pattern: /[Ll]ockfile at `[^`]*` needs to be updated|pyproject\.toml changed significantly since poetry\.lock/,
      code: "lock_out_of_sync",
    },
    { pattern: madeForOtherPython, code: "python_version_unavailable" },
    { pattern: /No matching distribution found|Could not find a version/, code: "dependency_not_found" },
    { pattern: /ensurepip is not available|No module named (?:venv|ensurepip|pip)/, code: "python_missing" },
    {
      pattern: /error: command '.*(?:gcc|cc|g\+\+|clang).*' failed|Failed building wheel|Unable to find .*Python\.h/,
      code: "native_build_failed",
    },
  ],
  go: [
    {
      pattern: /requires go >=? ?\d|go\.mod requires go|running go \d\S* \(running|toolchain not available/,
      code: "go_version_unavailable",
    },
    { pattern: /dial tcp|TLS handshake timeout|i\/o timeout|no such host/, code: "registry_unreachable" },
    {
      pattern: /missing go\.sum entry|updates to go\.mod needed|inconsistent vendoring|go: updating go\.mod/,
      code: "lock_out_of_sync",
    },
    { pattern: /checksum mismatch|SECURITY ERROR/, code: "lock_integrity_mismatch" },
    {
      pattern:
        /no required module provides package|cannot find module providing|unknown revision|404 Not Found|no matching versions/,
      code: "dependency_not_found",
    },
  ],
  bundler: [
    {
      pattern: /Could not reach host|Network error|getaddrinfo|SocketError|Net::OpenTimeout/,
      code: "registry_unreachable",
    },
    { pattern: /frozen mode|the lockfile|deployment mode/, code: "lock_out_of_sync" },
    {
      pattern: /Could not find (?:gem|compatible versions)|in any of the sources|locally installed gems/,
      code: "dependency_not_found",
    },
    { pattern: /Failed to build gem native extension/, code: "native_build_failed" },
  ],
  composer: [
    {
      pattern: /curl error (?:6|7|28|35)|could not be downloaded|Could not resolve host/,
      code: "registry_unreachable",
    },
    {
      pattern: /lock file is not up to date|lock file does not contain|not present in the lock file/,
      code: "lock_out_of_sync",
    },
    { pattern: /could not be found|Your requirements could not be resolved/, code: "dependency_not_found" },
  ],
  cargo: [
    {
      pattern:
        /requires rustc|is not supported by the following package|feature `edition\d+` is required|requires `-Znext-lockfile-bump`|lock file version .* was found, but this version of Cargo/,
      code: "rust_version_unavailable",
    },
    { pattern: /lock file \S+ needs to be updated|cannot (?:update|create) the lock file/, code: "lock_out_of_sync" },
    {
      pattern: /checksum for `[^`]*` changed between lock files|failed to verify the checksum/,
      code: "lock_integrity_mismatch",
    },
    {
      pattern:
        /[Cc]ould(?:n't| not) (?:connect|resolve)|[Tt]imeout was reached|SSL (?:connect|certificate)|spurious network/,
      code: "registry_unreachable",
    },
    {
      pattern:
        /no matching package|failed to select a version for the requirement|failed to authenticate|failed to clone/,
      code: "dependency_not_found",
    },
    { pattern: /linker `[^`]*` not found|failed to run custom build command/, code: "native_build_failed" },
  ],
  java: [
    { pattern: unfetchedWrapper, code: "package_manager_unavailable" },
    {
      pattern:
        /invalid (?:target|source) release|release version \S+ not supported|Unsupported class file major version|RequireJavaVersion|No matching toolchains found|Cannot find a Java installation|requires (?:at least )?(?:Java|JDK|JVM runtime version)/,
      code: "java_version_unavailable",
    },
    {
      pattern:
        /Unknown ?host|Connection (?:timed out|refused|reset)|[Cc]onnect timed out|Could not (?:GET|HEAD) 'http|PKIX path building failed/i,
      code: "registry_unreachable",
    },
    { pattern: /Dependency verification failed|Checksum validation failed/, code: "lock_integrity_mismatch" },
    {
      pattern:
        /Could not find artifact|was not found in \S+ during a previous attempt|Could not find \S+:\S+:|Plugin \[id: .* was not found/,
      code: "dependency_not_found",
    },
  ],
  script: [],
};

const outOfMemory =
  /JavaScript heap out of memory|Allocation failed - process out of memory|^MemoryError$|fatal error: runtime: out of memory/m;

/** Returns the failure code of a failed step, from its tool and the end of its output. */
export function classify(step: Step, output: string): BuilderFailureCode {
  if (outOfMemory.test(output)) return "build_out_of_memory";
  if (/ENOSPC|No space left on device|EDQUOT/.test(output)) return "disk_full";
  const sign = signs[step.tool].find(({ pattern }) => pattern.test(output));
  return sign?.code ?? step.otherwise;
}

// Lines that npm prints around every error; the sentence with the cause comes after them.
const noise =
  /^npm (?:error|ERR!) (?:code|errno|syscall|path|command|A complete log|An unknown git error|\(node:\d+\)|$)|^npm (?:error|ERR!)\s*$|^\s*$/;

// Preferred lines: npm first says that the lock file differs and only then what differs, pip lists all versions that do not fit before it
// names the requirement, and Node prints the source line before the error.
const tellingFirst = [
  /(?:Missing|Invalid): \S+/,
  /^ERROR: No matching distribution/,
  /^(?:[\w.]*(?:Error|Exception)|error)(?: ?\[\w+\])?: /,
];

/** Returns the output line that most likely names the cause, preferably one that matches `sought`; null if there is none. */
export function tellingLine(output: string, sought: RegExp = /(?!)/): string | null {
  // Next.js and others print warnings that look like errors before the heading of the real errors.
  const from = Math.max(0, output.lastIndexOf("Failed to compile"));
  const lines = output
    .slice(from)
    .split("\n")
    .map((line) => line.trim());
  const errors = lines.filter(
    (line) =>
      !noise.test(line) &&
      !/^(?:npm )?warn|^Found \d+ error|^> Build error occurred|^Failed to compile|could not read \d+ projects?\b/i.test(
        line,
      ) &&
      /\berror\b|ERR!|ERR_|✘|\bFailed\b|Error:|No matching|Cannot find|Missing: |Invalid: |^\S+:\d+:\d+: /i.test(line),
  );
  // A line such as `Build failed with 2 errors:` only announces the next lines.
  const saying = errors.filter((line) => !line.endsWith(":"));
  const among = saying.length > 0 ? saying : errors;
  const line =
    [sought, ...tellingFirst].map((pattern) => among.find((each) => pattern.test(each))).find(Boolean) ?? among[0];
  return line === undefined
    ? null
    : line.replace(/^(?:npm (?:error|ERR!)(?: notarget)?|ERROR:|\[ERROR\])\s*/, "").slice(0, 300);
}
