import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { unlessStatus } from "../kit/docker-api.ts";
import type { Command } from "../kit/exec.ts";
import { movedBy, moving, type Move, type Moved } from "../kit/move-below.ts";
import type { StorageOwner } from "../ports/runtime.ts";
import { systemBody } from "./container-bodies.ts";
import { labels, uidOf, type DockerContext } from "./settings.ts";
import { removeContainer, startContainer } from "./containers.ts";
import { emptyImage } from "./image-trees.ts";

const missing = 66;
const script = `[ -e "$1" ] || [ -L "$1" ] || exit ${missing}; rm -rf -- "$1"`;

/** Deletes a path below a storage folder, in a container that sees nothing else: links that the project's code made may point anywhere. */
export async function removeStored(
  context: DockerContext,
  { project, path }: { readonly project: StorageOwner; readonly path: string },
  signal: AbortSignal,
): Promise<boolean> {
  const code = await runInStorage(context, project, { file: "/bin/sh", args: ["-c", script, "sh", path] }, signal);
  if (code === 0 || code === missing) return code === 0;
  throw new Error(`the files could not be deleted: the command ended with ${code}`);
}

/** Moves a path there in the same way. */
export async function moveStored(
  context: DockerContext,
  { project, move }: { readonly project: StorageOwner; readonly move: Move },
  signal: AbortSignal,
): Promise<Moved> {
  return movedBy(await runInStorage(context, project, moving(move), signal), "", move);
}

/** Returns the command's exit code; `missing` when there is no storage folder. */
async function runInStorage(
  context: DockerContext,
  project: StorageOwner,
  { file, args }: Command,
  signal: AbortSignal,
): Promise<number> {
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
    return (await api.call<{ StatusCode: number }>(wait)).StatusCode;
  } finally {
    await unlessStatus(removeContainer(api, name), 404);
  }
}
