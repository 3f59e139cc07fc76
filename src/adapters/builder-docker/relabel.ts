import type { DockerApi } from "../../kit/docker-api.ts";
import { imageLabels } from "../../ports/image-labels.ts";
import { findImage } from "./move-image.ts";

/** Returns an image of the same layers and settings that carries another project's label. */
export async function relabel(api: DockerApi, id: string, projectId: string): Promise<string | null> {
  const image = await findImage(api, id);
  if (image === undefined) return null;
  const [repo, tag] = [`berth/${projectId.toLowerCase()}`, `from-${id.slice(7, 19)}`];
  const known = await findImage(api, `${repo}:${tag}`);
  if (known !== undefined) return known.Id;
  // The engine creates no container without a command; the settings below are those of the image.
  const body = { Image: id, Cmd: ["/berth"], NetworkDisabled: true };
  const { Id: container } = await api.call<{ Id: string }>({ method: "POST", path: "/containers/create", body });
  try {
    const config = { ...image.Config, Labels: { ...image.Config.Labels, [imageLabels.project]: projectId } };
    const made = await api.call<{ Id: string }>({
      ...{ method: "POST", path: "/commit", query: { container, repo, tag, pause: 0 }, body: config },
    });
    return made.Id;
  } finally {
    await api.call({ method: "DELETE", path: `/containers/${container}`, query: { force: 1 } });
  }
}
