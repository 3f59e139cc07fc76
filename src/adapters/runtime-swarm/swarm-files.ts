import { createHash } from "node:crypto";
import { DockerRefused, unlessStatus } from "../../kit/docker-api.ts";
import { labels } from "../../containers/settings.ts";
import type { SwarmFile } from "./attempt-spec.ts";
import type { SwarmContext } from "./settings.ts";

/** Stores content as a swarm config named after its hash, unless it exists. Machines receive it with the tasks that use it. */
export async function swarmFile(
  { managers, tag }: SwarmContext,
  { target, content }: { readonly target: string; readonly content: Buffer },
): Promise<SwarmFile> {
  const name = `berth-${tag}-${createHash("sha256").update(content).digest("hex").slice(0, 24)}`;
  const find = async () => (await unlessStatus(managers.call<{ ID: string }>({ path: `/configs/${name}` }), 404))?.ID;
  const create = async () => {
    const body = { Name: name, Labels: { [labels.runtime]: tag }, Data: content.toString("base64") };
    return (await managers.call<{ ID: string }>({ method: "POST", path: "/configs/create", body })).ID;
  };
  const id =
    (await find()) ??
    (await create().catch(async (error: unknown) => {
      const made = error instanceof DockerRefused && error.status === 409 ? await find() : undefined;
      if (made === undefined) throw error;
      return made;
    }));
  return { id, name, target };
}

export async function removeUnusedFiles({ managers, tag }: SwarmContext): Promise<void> {
  const filters = { label: [`${labels.runtime}=${tag}`] };
  const all = await managers.call<readonly { ID: string }[]>({ path: "/configs", query: { filters } });
  // The engine refuses to delete configs in use.
  for (const { ID } of all)
    await unlessStatus(managers.call({ method: "DELETE", path: `/configs/${ID}` }), 400, 404, 409, 500);
}
