import type { Platform } from "./platform.ts";

/** Returns the bytes of a project's repository, images and build caches: one limit applies to all. Null when it took too long. */
export async function sourceAndImagesBytes(
  { builder, repositories }: Pick<Platform["ports"], "builder" | "repositories">,
  projectId: string,
): Promise<number | null> {
  const [built, source] = [await builder.diskBytes(projectId), await repositories.diskBytes(projectId)];
  return built === null || source === null ? null : built + source;
}
