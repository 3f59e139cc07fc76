import type { Platform } from "./platform.ts";

/**
 * Returns how much disk a project's repository, images and build caches use, in bytes: one limit applies to all of them together. Null when
 * measuring took too long.
 */
export async function sourceAndImagesBytes(
  { builder, repositories }: Pick<Platform["ports"], "builder" | "repositories">,
  projectId: string,
): Promise<number | null> {
  const [built, source] = [await builder.diskBytes(projectId), await repositories.diskBytes(projectId)];
  return built === null || source === null ? null : built + source;
}
