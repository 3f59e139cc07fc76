import { createReadStream, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { importMinimalImage, startTestEngine, type TestEngine } from "../../../test/support/docker-engine.ts";
import { runOk } from "../../kit/exec.ts";
import { imageLabels, type ContainerManifest } from "../../ports/image-labels.ts";
import type { RuntimeFixture } from "../../ports/runtime.suite.ts";
import { createDockerRuntime, type DockerRuntime } from "./docker-runtime.ts";
import type { DockerRuntimeOptions } from "./settings.ts";

/** An engine with a runtime in a data folder of its own; `close` leaves nothing behind on the machine. */
export interface TestContainers extends RuntimeFixture {
  readonly engine: TestEngine;
  readonly runtime: DockerRuntime;
  readonly root: string;
  /** An image of one server file whose configuration has this besides, such as `User`. */
  makeConfigured(projectId: string, server: string, config: Readonly<Record<string, unknown>>): Promise<string>;
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
    makeImage: (projectId, files, web_command, processes = {}) =>
      commitImage(engine, { base, projectId, files }, { web_command, processes }),
    makeConfigured: (projectId, server, config) =>
      commitImage(
        engine,
        { base, projectId, files: { "server.js": server }, config },
        { web_command: "exec node server.js", processes: {} },
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

interface Source {
  readonly base: string;
  readonly projectId: string;
  readonly files: Readonly<Record<string, string>>;
  readonly config?: Readonly<Record<string, unknown>>;
}

/** The files as root's in /app, as a Dockerfile's COPY leaves them. */
export async function commitImage(
  { api }: TestEngine,
  { base, projectId, files, config: more = {} }: Source,
  commands: Pick<ContainerManifest, "web_command" | "processes">,
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "berth-image-"));
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    const tar = `${folder}.tar`;
    await runOk({ file: "tar", args: ["-C", folder, "--owner=0", "--group=0", "-cf", tar, ...Object.keys(files)] });
    const create = { method: "POST", path: "/containers/create", body: { Image: base, Cmd: ["-"] } } as const;
    const { Id: container } = await api.call<{ Id: string }>(create);
    const body = createReadStream(tar);
    await api.call({
      method: "PUT",
      path: `/containers/${container}/archive`,
      query: { path: "/app" },
      body,
      timeoutMs: 0,
    });
    rmSync(tar);
    const manifest = { format: 1, kind: "node", uses_own_command: false, release_command: null, ...commands };
    const labels = { [imageLabels.project]: projectId, [imageLabels.manifest]: JSON.stringify(manifest) };
    const config = { WorkingDir: "/app", Env: ["PATH=/usr/local/bin:/bin:/usr/bin"], Labels: labels, ...more };
    const { Id: id } = await api.call<{ Id: string }>({
      ...{ method: "POST", path: "/commit", query: { container }, body: config, timeoutMs: 0 },
    });
    await api.call({ method: "DELETE", path: `/containers/${container}` });
    return id;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
