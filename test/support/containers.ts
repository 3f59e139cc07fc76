import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { commitImage } from "./commit-image.ts";
import { importMinimalImage, startTestEngine, type TestEngine } from "./docker-engine.ts";
import type { RuntimeFixture } from "../../src/ports/runtime.suite.ts";
import type { DockerRuntime } from "../../src/containers/docker-runtime.ts";
import { createDockerRuntime } from "../../src/adapters/runtime-docker/docker-runtime.ts";
import type { DockerRuntimeOptions } from "../../src/containers/settings.ts";

/** A test engine with a runtime in its own data folder; `close` removes all traces from the machine. */
export interface TestContainers extends RuntimeFixture {
  readonly engine: TestEngine;
  readonly runtime: DockerRuntime;
  readonly root: string;
  /** Creates an image with one server file and this additional configuration, such as `User`. */
  makeConfigured(
    projectId: string,
    server: string,
    config: Readonly<Record<string, unknown>>,
    storage?: string,
  ): Promise<string>;
  reopen(more?: Partial<DockerRuntimeOptions>): Promise<DockerRuntime>;
}

export async function makeContainers(
  settings: Readonly<Record<string, unknown>> = {},
  options: Partial<DockerRuntimeOptions> = {},
): Promise<TestContainers> {
  const engine = await startTestEngine(settings);
  const root = mkdtempSync(join(tmpdir(), "berth-containers-"));
  const base = await importMinimalImage(engine.api);
  const runtimes: DockerRuntime[] = [];
  const open = async (more: Partial<DockerRuntimeOptions> = {}) => {
    for (const runtime of runtimes.splice(0)) runtime.close();
    const storageDir = (projectId: string) => join(root, "storage", projectId);
    const stateDir = join(root, "runtime");
    const runtime = await createDockerRuntime({
      ...{ socketPath: engine.socket, stateDir, storageDir },
      ...options,
      ...more,
    });
    runtimes.push(runtime);
    return runtime;
  };
  return {
    ...{ engine, root, runtime: await open(), reopen: open },
    makeImage: (projectId, files, web_command, { processes = {}, storage = "/storage" } = {}) =>
      commitImage(engine, { base, projectId, files }, { web_command, processes, storage }),
    makeConfigured: (projectId, server, config, storage = "/storage") =>
      commitImage(
        engine,
        { base, projectId, files: { "server.js": server }, config },
        { web_command: "exec node server.js", processes: {}, storage },
      ),
    async close() {
      for (const runtime of runtimes.splice(0)) {
        for (const { workload_id } of await runtime.observe()) await runtime.remove(workload_id);
        await runtime.dismantle();
        runtime.close();
      }
      await engine.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}
