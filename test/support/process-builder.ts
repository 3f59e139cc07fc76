import { existsSync, realpathSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { keepNpmCode, lendNpmCode } from "./npm-code.ts";
import { guardMs } from "./eventually.ts";
import { run, systemPath } from "../../src/kit/exec.ts";
import { createSandbox } from "../../src/sandbox/sandbox.ts";
import { until } from "../../src/kit/until.ts";
import type { Image } from "../../src/ports/builder.ts";
import { manifestName, treeName, type ReleaseManifest } from "../../src/ports/release-folder.ts";
import { findLanguages, type MachineLanguages } from "../../src/adapters/builder-process/tools/machine-languages.ts";
import {
  createProcessBuilder,
  type ProcessBuilder,
  type ProcessBuilderOptions,
} from "../../src/adapters/builder-process/process-builder.ts";

export interface TestBuilder {
  readonly builder: ProcessBuilder;
  readonly options: ProcessBuilderOptions;
  readonly root: string;
  close(): Promise<void>;
}

const caFile = process.env["NODE_EXTRA_CA_CERTS"];

export async function makeTestBuilder(changes: Partial<ProcessBuilderOptions> = {}): Promise<TestBuilder> {
  const root = await mkdtemp(join(tmpdir(), "berth-builder-"));
  const program = (name: string) => findProgram(name);
  const parts = {
    bwrap: program("bwrap"),
    setpriv: program("setpriv"),
    nft: program("nft"),
    ip: program("ip"),
    pasta: program("pasta"),
    socat: program("socat"),
  };
  const sandbox = await createSandbox({
    parts,
    stateDir: join(root, "sandbox"),
    nodeBin: process.execPath,
    hide: [root],
    ...(caFile === undefined ? {} : { caFile }),
  });
  const options = { ...(await testOptions(root)), sandbox, ...changes };
  lendNpmCode(options.toolsDir);
  const builder = await createProcessBuilder(options);
  const close = async () => {
    await builder.settle();
    keepNpmCode(options.toolsDir);
    await sandbox.dismantle();
    await rm(root, { recursive: true, force: true });
  };
  return { builder, options, root, close };
}

async function testOptions(root: string) {
  const go = findProgram("go", `/usr/local/go/bin:${systemPath}`);
  const folders = {
    releasesDir: join(root, "releases"),
    buildsDir: join(root, "builds"),
    cachesDir: join(root, "caches"),
    toolsDir: join(root, "tools"),
  };
  return {
    ...folders,
    nodeBin: process.execPath,
    npmDir: dirname(dirname(realpathSync(findProgram("npm") ?? "/usr/bin/npm"))),
    pythonBin: findProgram("python3", systemPath),
    goRoot: go === null ? null : dirname(dirname(realpathSync(go))),
    languages: await findLanguages(process.env as Record<string, string>),
    uidBase: 70_000,
    packageEnv: {},
    packageDirs: [],
    ...(caFile === undefined ? {} : { caFile }),
  };
}

function findProgram(name: string, path = process.env["PATH"] ?? systemPath): string | null {
  const found = path
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((file) => existsSync(file));
  return found ?? null;
}

/** Runs an image's web command in a sandbox, as the runtime would, and returns the response for `path`. */
export async function visit(test: TestBuilder, image: Image, path = "/"): Promise<{ status: number; text: string }> {
  const folder = join(test.options.releasesDir, "prj_suite", image.image_ref.slice("sha256:".length));
  const manifest = JSON.parse(await readFile(join(folder, manifestName), "utf8")) as ReleaseManifest;
  const id = `run-${Math.random().toString(36).slice(2)}`;
  const { sandbox } = test.options;
  const ready = await sandbox.command({
    ...{ id, uid: test.options.uidBase + 1, argv: ["/bin/sh", "-c", manifest.web_command ?? ""], env: manifest.env },
    app: { source: join(folder, treeName), access: "read" },
    ...{ storageDir: null, path: manifest.path, limits: null },
    binds: manifest.binds.map((bind) => ({ ...bind, writable: false })),
    network: { kind: "serve", port: 3000, reach: [] },
  });
  const stop = new AbortController();
  const ended = run(ready.command, { ...ready.options, signal: stop.signal });
  try {
    const answer = await until(() => ask(`http://${ready.address?.host}:${ready.address?.port}${path}`), {
      timeoutMs: guardMs,
    });
    if (answer) return answer;
    stop.abort();
    throw new Error(`nothing answered: ${JSON.stringify(await ended)}`);
  } finally {
    ready.close();
    stop.abort();
    await ended;
    await sandbox.remove(id);
  }
}

async function ask(url: string) {
  const response = await fetch(url, { signal: AbortSignal.timeout(5000) }).catch(() => undefined);
  return response && { status: response.status, text: await response.text() };
}

async function isRegistryReachable(): Promise<boolean> {
  const npm = findProgram("npm");
  if (npm === null) return false;
  const env = {
    PATH: process.env["PATH"] ?? systemPath,
    HOME: tmpdir(),
    ...(caFile === undefined ? {} : { NODE_EXTRA_CA_CERTS: caFile }),
  };
  const result = await run({ file: npm, args: ["view", "is-number", "version"] }, { env, timeoutMs: guardMs });
  return result.exitCode === 0;
}

/** The reason why tests that install from the registry cannot run here, or false. */
export const withoutRegistry: string | false = (await isRegistryReachable())
  ? false
  : "SKIPPED: the npm registry cannot be reached";

/** A machine without any of the optional languages. */
export const noLanguages: MachineLanguages = {
  rustRoot: null,
  jdks: [],
  maven: null,
  gradle: null,
  ruby: null,
  php: null,
  composer: null,
};
