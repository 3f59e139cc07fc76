import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSandbox } from "../../src/sandbox/sandbox.ts";
import type { NetworkMode, Sandbox, SandboxParts } from "../../src/sandbox/spec.ts";
import { testParts } from "./sandbox-parts.ts";
import type { ReleaseManifest } from "../../src/ports/release-folder.ts";
import { createProcessRuntime, type ProcessRuntime } from "../../src/adapters/runtime-process/process-runtime.ts";
import type { ProcessRuntimeOptions } from "../../src/adapters/runtime-process/settings.ts";

/** A data folder for one test file, inside a folder that only its owner can enter, like /root. */
export interface TestGround {
  readonly root: string;
  readonly sandbox: Sandbox;
  open(more?: Partial<ProcessRuntimeOptions>): Promise<ProcessRuntime>;
  makeImage(
    projectId: string,
    files: Readonly<Record<string, string>>,
    webCommand: string,
    more?: Partial<Pick<ReleaseManifest, "processes" | "storage">>,
  ): Promise<string>;
  close(): Promise<void>;
}

/** Creates the folder; `close` removes all traces from the machine. */
export async function makeGround(
  options: { root?: string; parts?: SandboxParts; network?: "auto" | NetworkMode; layerBytes?: number } = {},
): Promise<TestGround> {
  const root = options.root ?? mkdtempSync(join(tmpdir(), "berth-runtime-"));
  const data = join(root, "private", "data");
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const sandbox = await createSandbox({
    parts: options.parts ?? testParts(),
    stateDir: join(data, "sandbox"),
    nodeBin: process.execPath,
    network: options.network ?? "auto",
    ...(options.layerBytes === undefined ? {} : { layerBytes: options.layerBytes }),
  });
  const expected = process.env["BERTH_TEST_NETWORK"];
  if (options.network === undefined && expected !== undefined) assert.equal(sandbox.describe().network, expected);
  const runtimes: ProcessRuntime[] = [];
  return {
    root,
    sandbox,
    async open(more = {}) {
      for (const runtime of runtimes.splice(0)) runtime.close();
      const storageDir = (projectId: string) => join(data, "storage", projectId);
      const runtime = await createProcessRuntime({
        sandbox,
        stateDir: join(data, "runtime"),
        releasesDir: join(data, "releases"),
        storageDir,
        ...more,
      });
      runtimes.push(runtime);
      return runtime;
    },
    makeImage: async (projectId, files, web_command, { processes = {}, storage = "/storage" } = {}) =>
      writeRelease(join(data, "releases", projectId), files, { web_command, processes, storage }),
    async close() {
      for (const runtime of runtimes.splice(0)) {
        for (const { workload_id } of await runtime.observe()) await runtime.remove(workload_id);
        runtime.close();
      }
      await sandbox.dismantle();
      if (options.root === undefined) rmSync(root, { recursive: true, force: true });
    },
  };
}

function writeRelease(
  folder: string,
  files: Readonly<Record<string, string>>,
  commands: Pick<ReleaseManifest, "web_command" | "processes"> & { readonly storage: string },
): string {
  const digest = createHash("sha256")
    .update(JSON.stringify([files, commands]))
    .digest("hex");
  const tree = join(folder, digest, "app");
  mkdirSync(tree, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(tree, name), text);
  // As the builder does.
  if (commands.storage.startsWith("/app/")) mkdirSync(join(folder, digest, commands.storage), { recursive: true });
  for (const path of [folder, join(folder, digest), tree]) chmodSync(path, 0o755);
  const manifest: ReleaseManifest = {
    format: 1,
    kind: "node",
    ...commands,
    release_command: null,
    env: {},
    path: [],
    binds: [],
  };
  writeFileSync(join(folder, digest, "image.json"), JSON.stringify(manifest));
  return `sha256:${digest}`;
}
