import { createReadStream, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runOk } from "../../src/kit/exec.ts";
import { imageLabels, type ContainerManifest } from "../../src/ports/image-labels.ts";
import type { TestEngine } from "./docker-engine.ts";

interface Source {
  readonly base: string;
  readonly projectId: string;
  readonly files: Readonly<Record<string, string>>;
  readonly config?: Readonly<Record<string, unknown>>;
}

/** Copies the files to /app with root as their owner, as a Dockerfile's COPY does. */
export async function commitImage(
  { api }: TestEngine,
  { base, projectId, files, config: more = {} }: Source,
  commands: Pick<ContainerManifest, "web_command" | "processes" | "storage">,
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
