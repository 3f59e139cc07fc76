import type { DockerApi } from "../../kit/docker-api.ts";
import { unlessStatus } from "../../kit/docker-api.ts";

export interface EngineImage {
  readonly Id: string;
  readonly Size: number;
  readonly Config: {
    readonly Entrypoint: readonly string[] | null;
    readonly Cmd: readonly string[] | null;
    readonly Healthcheck?: { readonly Test?: readonly string[] };
    readonly ExposedPorts?: Readonly<Record<string, unknown>>;
  };
}

/** An image of an engine by its name or id; undefined when there is none. */
export function findImage(api: DockerApi, name: string): Promise<EngineImage | undefined> {
  return unlessStatus(api.call<EngineImage>({ path: `/images/${name}/json` }), 404);
}

/** Copies an image from an engine to another, where it keeps its id and, when it is asked for by name, its name. */
export async function copyImage(from: DockerApi, to: DockerApi, name: string, signal?: AbortSignal): Promise<void> {
  const options = { timeoutMs: 0, ...(signal === undefined ? {} : { signal }) };
  const body = await from.stream({ path: `/images/${name}/get`, ...options });
  try {
    const answer = await to.call<{ error?: string } | undefined>({
      ...{ method: "POST", path: "/images/load", query: { quiet: 1 } },
      ...{ body, ...options },
    });
    if (answer?.error !== undefined) throw new Error(`the Docker engine took no image: ${answer.error}`);
  } finally {
    body.destroy();
  }
}
