import { accessSync, constants } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { realpathSync } from "node:fs";
import { newId } from "../../kit/ids.ts";
import { run, start, systemPath } from "../../kit/exec.ts";
import { createSandbox } from "../../kit/sandbox/sandbox.ts";
import type { Builder, BuildOutcome, BuildRequest } from "../../ports/builder.ts";
import { createProcessBuilder, type ProcessBuilderOptions } from "./process-builder.ts";

/** A builder in a folder of its own, for tests. */
export interface TestBuilder {
  readonly builder: Builder;
  readonly options: ProcessBuilderOptions;
  readonly root: string;
  close(): Promise<void>;
}

export type Files = Readonly<Record<string, string>>;

/** Makes a real builder on a real sandbox, with what this machine has. */
export async function makeTestBuilder(changes: Partial<ProcessBuilderOptions> = {}): Promise<TestBuilder> {
  const root = await mkdtemp(join(tmpdir(), "berth-builder-"));
  const program = (name: string) => findProgram(name);
  const parts = { bwrap: program("bwrap"), setpriv: program("setpriv"), nft: program("nft"), ip: program("ip"), pasta: program("pasta"), socat: program("socat") };
  const sandbox = await createSandbox({ parts, stateDir: join(root, "sandbox"), nodeBin: process.execPath, hide: [root] });
  const options = { ...(await testOptions(root)), sandbox, ...changes };
  return { builder: await createProcessBuilder(options), options, root, close: () => rm(root, { recursive: true, force: true }) };
}

async function testOptions(root: string) {
  const go = findProgram("go", `/usr/local/go/bin:${systemPath}`);
  const folders = { releasesDir: join(root, "releases"), buildsDir: join(root, "builds"), cachesDir: join(root, "caches"), toolsDir: join(root, "tools") };
  return {
    ...folders,
    nodeBin: process.execPath,
    npmDir: dirname(dirname(realpathSync(findProgram("npm") ?? "/usr/bin/npm"))),
    pythonBin: findProgram("python3", systemPath),
    goRoot: go === null ? null : dirname(dirname(realpathSync(go))),
    uidBase: 70_000,
    packageEnv: {},
    packageDirs: [],
  };
}

export function findProgram(name: string, path = process.env["PATH"] ?? systemPath): string | null {
  for (const folder of path.split(delimiter)) {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return join(folder, name);
    } catch {}
  }
  return null;
}

export interface BuildTrial {
  readonly outcome: BuildOutcome;
  readonly lines: readonly string[];
  readonly tookMs: number;
}

/** Builds some files as if they had been pushed, and collects the log. */
export async function buildFiles(test: TestBuilder, files: Files, request: Partial<BuildRequest> = {}): Promise<BuildTrial> {
  const folder = await mkdtemp(join(test.root, "source-"));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text, { mode: path.endsWith(".sh") ? 0o755 : 0o644 });
  }
  try {
    return await buildFolder(test, folder, request);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Builds a folder's content. */
export async function buildFolder(test: TestBuilder, folder: string, request: Partial<BuildRequest> = {}): Promise<BuildTrial> {
  const lines: string[] = [];
  const startedMs = performance.now();
  const outcome = await test.builder.build({
    build_id: newId("bld"),
    project_id: "prj_1",
    project_number: 1,
    source: () => tarOf(folder),
    env: {},
    limits: { memoryBytes: 2 * 1024 ** 3, processes: 512, timeoutMs: 240_000, silenceMs: 120_000 },
    signal: new AbortController().signal,
    onLine: (line) => void lines.push(line),
    ...request,
  });
  return { outcome, lines, tookMs: performance.now() - startedMs };
}

function tarOf(folder: string): Readable {
  const child = start({ file: "tar", args: ["--create", `--directory=${folder}`, "--file=-", "."] });
  return child.stdout;
}

/** Whether the package registry answers; asked once. */
export async function isRegistryReachable(): Promise<boolean> {
  const npm = findProgram("npm");
  if (npm === null) return false;
  const env = { PATH: process.env["PATH"] ?? systemPath, HOME: tmpdir(), ...certificates() };
  const result = await run({ file: npm, args: ["view", "is-number", "version"] }, { env, timeoutMs: 20_000 });
  return result.exitCode === 0;
}

function certificates(): Record<string, string> {
  const file = process.env["NODE_EXTRA_CA_CERTS"];
  return file === undefined ? {} : { NODE_EXTRA_CA_CERTS: file };
}
