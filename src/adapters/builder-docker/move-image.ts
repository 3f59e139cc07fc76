import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { unlessStatus, type DockerApi } from "../../kit/docker-api.ts";
import { layerArchive } from "./layer-archive.ts";

export interface EngineImage {
  readonly Id: string;
  readonly Size: number;
  readonly Architecture: string;
  readonly Os: string;
  readonly RootFS: { readonly Layers?: readonly string[] };
  readonly Config: {
    readonly Entrypoint: readonly string[] | null;
    readonly Cmd: readonly string[] | null;
    readonly User?: string;
    readonly Labels?: Readonly<Record<string, string>> | null;
    readonly Healthcheck?: { readonly Test?: readonly string[]; readonly StartPeriod?: number };
    readonly ExposedPorts?: Readonly<Record<string, unknown>>;
    readonly Volumes?: Readonly<Record<string, unknown>> | null;
    readonly WorkingDir?: string;
  };
}

export function findImage(api: DockerApi, name: string): Promise<EngineImage | undefined> {
  return unlessStatus(api.call<EngineImage>({ path: `/images/${name}/json` }), 404);
}

interface Giving {
  readonly from: DockerApi;
  /** Folder with `from`'s data. */
  readonly dataRoot: string;
  readonly to: DockerApi;
  /** Images of `to` that may share layers with the new one. */
  readonly relatives: readonly string[];
  readonly signal: AbortSignal;
}

/** Copies only the layers that no relative has; copies the whole image if that fails. */
export async function giveImage(id: string, { from, dataRoot, to, relatives, signal }: Giving): Promise<void> {
  const known = new Set<string>();
  for (const name of relatives) {
    const layers = (await findImage(to, name))?.RootFS.Layers ?? [];
    for (const index of layers.keys()) known.add(layers.slice(0, index + 1).join());
  }
  try {
    await load(to, Readable.from(layerArchive(dataRoot, id, (layers) => known.has(layers.join()))), signal);
    if ((await findImage(to, id)) !== undefined) return;
  } catch {
    signal.throwIfAborted();
  }
  await copyImage(from, to, id, signal);
}

/** Copies an image between engines. It keeps its id and, if `name` is a name, its name. */
export async function copyImage(from: DockerApi, to: DockerApi, name: string, signal?: AbortSignal): Promise<void> {
  const options = { timeoutMs: 0, ...(signal === undefined ? {} : { signal }) };
  const body = await from.stream({ path: `/images/${name}/get`, ...options });
  try {
    await load(to, body, signal);
  } finally {
    body.destroy();
  }
}

async function load(to: DockerApi, body: Readable, signal?: AbortSignal): Promise<void> {
  const options = { timeoutMs: 0, ...(signal === undefined ? {} : { signal }) };
  const answer = await to.stream({ method: "POST", path: "/images/load", query: { quiet: 1 }, body, ...options });
  const said = await text(answer);
  if (said.includes('"error"')) throw new Error(`the Docker engine did not load the image: ${said.slice(0, 500)}`);
}
