import { DockerRefused, unlessStatus } from "../../kit/docker-api.ts";
import { labels } from "../../containers/settings.ts";
import type { SwarmContext } from "./settings.ts";

/** Returns the id of a project's overlay network, which is created if missing. It connects the project's replicas and nothing else. */
export async function openOverlay(
  { managers, tag, runExclusive }: SwarmContext,
  projectNumber: number,
): Promise<string> {
  const name = `berth-${tag}-swarm-${projectNumber}`;
  return runExclusive(name, async () => {
    const find = async () =>
      (await unlessStatus(managers.call<{ Id: string }>({ path: `/networks/${name}` }), 404))?.Id;
    // Never set the option `encrypted`: engines before version 23 take even `false` for true.
    const body = { Name: name, CheckDuplicate: true, Driver: "overlay", Labels: { [labels.runtime]: `${tag}-swarm` } };
    const create = async () =>
      (await managers.call<{ Id: string }>({ method: "POST", path: "/networks/create", body })).Id;
    return (
      (await find()) ??
      (await create().catch(async (error: unknown) => {
        const made = error instanceof DockerRefused && error.status === 409 ? await find() : undefined;
        if (made === undefined) throw error;
        return made;
      }))
    );
  });
}

export async function removeUnusedOverlays({ managers, tag }: SwarmContext): Promise<void> {
  const filters = { label: [`${labels.runtime}=${tag}-swarm`] };
  const all = await managers.call<readonly { Id: string }[]>({ path: "/networks", query: { filters } });
  for (const { Id } of all)
    await unlessStatus(managers.call({ method: "DELETE", path: `/networks/${Id}` }), 400, 403, 404, 409, 500);
}
