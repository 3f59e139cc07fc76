import { mkdir, rm } from "node:fs/promises";
import { packRelease, publicKeyOf, signRelease } from "./pack-release.ts";
import { stageRelease, type platforms } from "./stage-release.ts";

/** Builds the newest commit into the folder `to`, in place of what is there, signs it, and returns the archives' paths. */
export async function buildRelease(
  to: string,
  privateKey: string,
  arches: readonly (keyof typeof platforms)[],
): Promise<readonly string[]> {
  await rm(to, { recursive: true, force: true });
  await mkdir(to, { recursive: true });
  const archives: string[] = [];
  for (const arch of arches) {
    const folder = `${to}/stage-${arch}`;
    const staged = await stageRelease(folder, { arch, publicKey: `${publicKeyOf(privateKey)}\n` });
    archives.push(await packRelease(folder, to, { ...staged, arch }));
    await rm(folder, { recursive: true });
  }
  await signRelease(to, archives, privateKey);
  return archives;
}
