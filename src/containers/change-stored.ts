import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { unlessStatus } from "../kit/docker-api.ts";
import type { Command } from "../kit/exec.ts";
import { missing, type Ended } from "../kit/move-below.ts";
import type { StorageOwner } from "../ports/runtime.ts";
import { systemBody } from "./container-bodies.ts";
import { labels, uidOf, type DockerContext } from "./settings.ts";
import { removeContainer, startContainer } from "./containers.ts";
import { emptyImage } from "./image-trees.ts";

/** Runs a command in a storage folder, in a container that sees nothing else: links that the project's code made may point anywhere. */
export async function changeStored(
  context: DockerContext,
  project: StorageOwner,
  { file, args }: Command,
  signal: AbortSignal,
): Promise<Ended> {
  const { api, options, tag } = context;
  const folder = options.storageDir(project.project_id, project.project_number);
  if (!existsSync(folder)) return missing;
  const name = `berth-${tag}-change-${randomBytes(8).toString("hex")}`;
  const body = systemBody({
    ...{ image: await emptyImage(context), uid: uidOf(options, project), network: "none" },
    labels: { [labels.runtime]: tag, [labels.role]: "once" },
    ...{ entrypoint: [file], words: args, workingDir: "/storage" },
    binds: [{ source: folder, target: "/storage", writable: true }],
  });
  try {
    const id = await startContainer(api, name, body);
    const wait = { method: "POST", path: `/containers/${id}/wait`, signal, timeoutMs: 120_000 } as const;
    return { exitCode: (await api.call<{ StatusCode: number }>(wait)).StatusCode, stderr: "" };
  } finally {
    await unlessStatus(removeContainer(api, name), 404);
  }
}
