import type { Failure, Stage } from "../ports/failure.ts";

type CodeText = Pick<Failure, "stage" | "summary" | "hint">;

/** Every failure of this builder: where it happens, its message and what to do about it. The documentation is generated from it. */
export const builderFailures = {
  source_too_large: {
    stage: "receive",
    summary: "The source is larger than a build may unpack.",
    hint: "Take large files out of the repository: put them into $STORAGE_DIR, or ignore build output and node_modules in .gitignore. The operator's setting BERTH_TREE_MIB raises the limit.",
  },
  source_unreadable: {
    stage: "receive",
    summary: "The source could not be unpacked.",
    hint: "Push again. If the error persists, run `git fsck` in your repository.",
  },
  lfs_not_fetched: {
    stage: "receive",
    summary: "Files of the repository are in Git LFS, which Berth does not serve.",
    hint: 'Store them in git itself: `git lfs migrate export --include="*" --everything` and push again. Or put them into $STORAGE_DIR. If the application does not need them, set `"lfs": "ignore"` in berth.json, which deploys the pointers.',
  },
  nothing_to_run: {
    stage: "detect",
    summary: "No file in the source says what to run.",
    hint: "Add a Procfile with `web: <command>`, a package.json, a deno.json, a requirements.txt or pyproject.toml, a go.mod, a Cargo.toml, a pom.xml or build.gradle, or an index.html at the root or in public/.",
  },
  procfile_invalid: {
    stage: "detect",
    summary: "The Procfile cannot be read.",
    hint: "Each line is `<process>: <command>`, such as `web: node server.js`.",
  },
  procfile_command_missing: {
    stage: "detect",
    summary: "A Procfile command starts a file that does not exist.",
    hint: "Correct the path in the Procfile (it is relative to the root of the repository), commit the file, or let the `build` script create it.",
  },
  storage_path_unusable: {
    stage: "detect",
    summary: "The persistent folder cannot be mounted where berth.json's `storage` asks.",
    hint: "Choose a folder of its own, such as /data, or one in the application's folder, such as /app/uploads.",
  },
  dockerfile_not_supported: {
    stage: "detect",
    summary: "The repository has a Dockerfile, which this Berth does not build, and no other file says what to run.",
    hint: "Add a Procfile with `web: <command>`; dependencies are installed from package.json, requirements.txt, pyproject.toml or go.mod. The operator's setting BERTH_RUNTIME=docker builds Dockerfiles.",
  },
  dockerfile_invalid: {
    stage: "detect",
    summary: "The Dockerfile cannot be read.",
    hint: "Correct the line that is named, commit and push again. `docker build .` on your machine should show the same.",
  },
  dockerfile_syntax_refused: {
    stage: "detect",
    summary: "The Dockerfile names its own frontend.",
    hint: "Leave the line `# syntax=` out, or name docker/dockerfile:1.",
  },
  parent_image_unavailable: {
    stage: "build",
    summary: "A base image of the Dockerfile could not be pulled.",
    hint: "Check the name and the tag after `FROM`, and that the machine reaches the registry. Images of other projects cannot be used.",
  },
  image_platform_mismatch: {
    stage: "build",
    summary: "The image is for another kind of machine.",
    hint: "Build it for this machine's platform, such as with `docker buildx build --platform linux/amd64`, or name an image that exists for it.",
  },
  dockerfile_step_failed: {
    stage: "build",
    summary: "A step of the Dockerfile failed.",
    hint: "The end of the log says why. `docker build .` on your machine should show the same.",
  },
  package_json_invalid: {
    stage: "detect",
    summary: "package.json is not valid JSON.",
    hint: "Check it with `node -p \"require('./package.json')\"`.",
  },
  pyproject_invalid: {
    stage: "detect",
    summary: "pyproject.toml is not valid TOML.",
    hint: "Check it with `python3 -m pip install --dry-run .`.",
  },
  no_start_command: {
    stage: "detect",
    summary: "Berth found the application, but not how to start it.",
    hint: "Add a Procfile with `web: <command>`, or for Node.js a `start` script in package.json.",
  },
  node_version_unavailable: {
    stage: "detect",
    summary: "No Node.js release fits the version that the application requires.",
    hint: "Change `engines.node` in package.json, .nvmrc or .node-version to a released version, such as `24`.",
  },
  python_missing: {
    stage: "detect",
    summary: "This machine has no Python that can create a virtual environment.",
    hint: "Ask the operator to install it, on Debian and Ubuntu with `apt-get install python3 python3-venv`.",
  },
  python_version_unavailable: {
    stage: "detect",
    summary: "This machine's Python does not fit the version that the application requires.",
    hint: "Change `requires-python` in pyproject.toml or the dependency's version, or ask the operator for another Python.",
  },
  go_missing: {
    stage: "detect",
    summary: "This machine has no Go toolchain.",
    hint: "Ask the operator to install it, on Debian and Ubuntu with `apt-get install golang-go`.",
  },
  go_version_unavailable: {
    stage: "build",
    summary: "go.mod asks for a newer Go than this machine has.",
    hint: "Lower the `go` line of go.mod, or ask the operator for a newer toolchain.",
  },
  rust_missing: {
    stage: "detect",
    summary: "This machine has no Rust toolchain.",
    hint: "Ask the operator to install it with rustup, or on Debian and Ubuntu with `apt-get install cargo`.",
  },
  rust_version_unavailable: {
    stage: "build",
    summary: "The application requires a newer Rust than this machine has.",
    hint: "Lower `rust-version` in Cargo.toml, use versions of the dependencies that support this Rust, or ask the operator for a newer toolchain.",
  },
  java_missing: {
    stage: "detect",
    summary: "This machine has no Java development kit.",
    hint: "Ask the operator to install one, on Debian and Ubuntu with `apt-get install default-jdk-headless`.",
  },
  java_version_unavailable: {
    stage: "build",
    summary: "The application requires another Java than this machine has.",
    hint: "Change the version in pom.xml, build.gradle or system.properties, or ask the operator for that JDK below /usr/lib/jvm.",
  },
  ruby_missing: {
    stage: "detect",
    summary: "This machine has no Ruby.",
    hint: "Ask the operator to install it, on Debian and Ubuntu with `apt-get install ruby bundler`.",
  },
  ruby_version_unavailable: {
    stage: "detect",
    summary: "This machine's Ruby does not fit the version that the application requires.",
    hint: "Change the version in the Gemfile or .ruby-version, or ask the operator for that Ruby.",
  },
  php_missing: {
    stage: "detect",
    summary: "This machine has no PHP.",
    hint: "Ask the operator to install it, on Debian and Ubuntu with `apt-get install php-cli composer`.",
  },
  php_version_unavailable: {
    stage: "detect",
    summary: "This machine's PHP does not fit the version that the application requires.",
    hint: "Change `require.php` in composer.json, or ask the operator for that PHP.",
  },
  build_tool_missing: {
    stage: "detect",
    summary: "This machine does not have the build tool that the application uses.",
    hint: "Commit its wrapper (mvnw, gradlew), or ask the operator for the tool.",
  },
  manifest_invalid: {
    stage: "detect",
    summary: "A file that describes the application cannot be read.",
    hint: "Correct the file that is named, commit and push again.",
  },
  deno_unavailable: {
    stage: "detect",
    summary: "The Deno version that the application requires could not be fetched.",
    hint: "Check .deno-version; when it is right, check that the machine reaches the npm registry, from where Deno comes.",
  },
  package_manager_unavailable: {
    stage: "install",
    summary: "The package manager that the application uses could not be fetched.",
    hint: "Check the version that the source names (`packageManager`, the settings of a wrapper); when it is right, check that the machine reaches the package registry.",
  },
  lock_out_of_sync: {
    stage: "install",
    summary: "The lock file does not fit the dependencies that are declared.",
    hint: "Run the install on your machine (`npm install`, `pnpm install`, `yarn`, `bun install`, `deno install`, `uv lock`, `poetry lock`, `go mod tidy`, `cargo update --workspace`), commit the lock file and push again.",
  },
  lock_integrity_mismatch: {
    stage: "install",
    summary: "A downloaded package differs from the one the lock file names.",
    hint: "Create the lock file again on your machine, and check what changed before you commit it.",
  },
  dependency_not_found: {
    stage: "install",
    summary: "A dependency, or the requested version of it, does not exist.",
    hint: "Check the name and the version. A private package needs its registry in .npmrc or requirements.txt, with the token as a variable: `berth env set NPM_TOKEN -`, and `${NPM_TOKEN}` in the file. Builds have no SSH key: name git dependencies by https.",
  },
  registry_unreachable: {
    stage: "install",
    summary: "The package registry could not be reached.",
    hint: "Push again later. If the error persists, ask the operator to check the machine's network and proxy.",
  },
  native_build_failed: {
    stage: "install",
    summary: "A dependency with native code could not be compiled.",
    hint: "Use a version that ships prebuilt binaries for this Node.js or Python, or ask the operator for compilers (`apt-get install build-essential python3-dev`).",
  },
  install_failed: {
    stage: "install",
    summary: "Installing the dependencies failed.",
    hint: "The end of the log says why. The same command on your machine should show the same.",
  },
  build_script_failed: {
    stage: "build",
    summary: "The build command failed.",
    hint: "The end of the log says why. Run the same command on your machine.",
  },
  build_output_missing: {
    stage: "build",
    summary: "The build succeeded but left nothing that can be run or served.",
    hint: "Write the site into dist/, build/, out/ or public/, or add a Procfile with `web: <command>`.",
  },
  build_timeout: {
    stage: "build",
    summary: "The build exceeded its time limit.",
    hint: "Make the build shorter, or ask the operator to raise BERTH_BUILD_SECONDS.",
  },
  build_silent: {
    stage: "build",
    summary: "The build hung: it printed and computed nothing for too long.",
    hint: "A command may be waiting for input or hanging. Let long steps print their progress, or ask the operator to raise BERTH_BUILD_SECONDS, a third of which may pass so.",
  },
  build_out_of_memory: {
    stage: "build",
    summary: "The build exceeded its memory limit.",
    hint: "Run less in parallel, or ask the operator to raise BERTH_BUILD_MEMORY_MIB.",
  },
  build_output_too_large: {
    stage: "build",
    summary: "The build left more files than an image may hold.",
    hint: "Delete what the application does not need at the end of the build script. The operator's setting BERTH_IMAGES_MIB raises the limit of bytes.",
  },
  disk_full: {
    stage: "build",
    summary: "The disk is full.",
    hint: "Ask the operator to free space on the machine.",
  },
} as const satisfies Record<string, CodeText>;

export type BuilderFailureCode = keyof typeof builderFailures;

export interface FailureDetail {
  /** A specific message, in place of the code's general sentence. */
  readonly summary?: string;
  readonly hint?: string;
  /** The stage in which it happened, if that is not the code's usual one. */
  readonly stage?: Stage;
}

/** Thrown inside the builder if the source can't be built; `build` turns it into the outcome `failed`. */
export class BuildRefused extends Error {
  readonly code: BuilderFailureCode;
  readonly detail: FailureDetail;
  constructor(code: BuilderFailureCode, detail: FailureDetail = {}) {
    super(detail.summary ?? builderFailures[code].summary);
    this.name = "BuildRefused";
    this.code = code;
    this.detail = detail;
  }
}

/** Returns the failure to report for a refusal. Its sentences may quote a command's output, so secrets in them are redacted too. */
export function toFailure(
  refused: BuildRefused,
  logTail: readonly string[],
  redact: (text: string) => string,
): Failure {
  const text = builderFailures[refused.code];
  return {
    stage: refused.detail.stage ?? text.stage,
    code: refused.code,
    summary: redact(refused.detail.summary ?? text.summary),
    hint: redact(refused.detail.hint ?? text.hint),
    log_tail: logTail,
  };
}
