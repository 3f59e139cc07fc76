import { createInterface } from "node:readline";
import { unlessStatus, type DockerApi } from "../../kit/docker-api.ts";
import type { ProjectImage } from "../../ports/runtime.ts";

export interface ImageRegistry {
  /** Prefix of image names: `host:port`, or `host:port/path`. Resolves once the registry answers. */
  name(): Promise<string>;
  /** Value of X-Registry-Auth, which the engine requires even without a login. */
  readonly authHeader: string;
  /** Shell commands that give another machine access; empty if the operator takes care of that. */
  trustScript(): Promise<string>;
  /** Deletes an image if the registry allows it. Idempotent. */
  deleteImage(repository: string, digest: string): Promise<void>;
}

const pushMs = 600_000;

/** Returns the image's name in the registry, by digest. Pushes the image if it was not pushed before, or with `again`. */
export async function registeredImage(
  { api, registry }: { readonly api: DockerApi; readonly registry: ImageRegistry },
  { project_id, image_ref }: ProjectImage,
  { again = false } = {},
): Promise<string> {
  const repo = `${await registry.name()}/berth/${project_id.toLowerCase()}`;
  const known = again ? undefined : await digestIn(api, image_ref, repo);
  return known ?? `${repo}@${await push({ api, registry }, image_ref, repo)}`;
}

async function digestIn(api: DockerApi, imageRef: string, repo: string): Promise<string | undefined> {
  const found = await api.call<{ RepoDigests: readonly string[] | null }>({ path: `/images/${imageRef}/json` });
  return found.RepoDigests?.find((name) => name.startsWith(`${repo}@`));
}

async function push(
  { api, registry }: { readonly api: DockerApi; readonly registry: ImageRegistry },
  imageRef: string,
  repo: string,
): Promise<string> {
  const tag = imageRef.replace(/^sha256:/, "").slice(0, 12);
  await api.call({ method: "POST", path: `/images/${imageRef}/tag`, query: { repo, tag } });
  const answer = await api.stream({
    ...{ method: "POST", path: `/images/${repo}/push`, query: { tag } },
    headers: { "x-registry-auth": registry.authHeader },
    ...{ signal: AbortSignal.timeout(pushMs), timeoutMs: 0 },
  });
  let digest: string | undefined;
  for await (const line of createInterface({ input: answer })) {
    const said = JSON.parse(line) as { readonly error?: string; readonly aux?: { readonly Digest?: string } };
    if (said.error !== undefined) throw new Error(`the registry did not accept the image: ${said.error}`);
    digest = said.aux?.Digest ?? digest;
  }
  if (digest === undefined) throw new Error("the registry returned no digest for the image");
  return digest;
}

export async function unregisterImage(
  { api, registry }: { readonly api: DockerApi; readonly registry: ImageRegistry },
  { project_id, image_ref }: ProjectImage,
): Promise<void> {
  const [name, repository] = [await registry.name(), `berth/${project_id.toLowerCase()}`];
  const found = await unlessStatus(digestIn(api, image_ref, `${name}/${repository}`), 404);
  if (found !== undefined) await registry.deleteImage(repository, found.slice(found.indexOf("@") + 1));
}
