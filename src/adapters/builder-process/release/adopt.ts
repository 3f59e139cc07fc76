import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { runOk } from "../../../kit/exec.ts";
import { treeName } from "../../../ports/release-folder.ts";
import type { ProjectImage } from "../../../ports/runtime.ts";
import type { ProcessBuilderOptions } from "../options.ts";
import { syncFileSystem, syncFolder } from "../../../kit/sync-disk.ts";
import { hasItsTools, moved } from "./publish.ts";

interface Adopting {
  readonly id: string;
  /** The user of the project in its sandbox. */
  readonly uid: number;
}

/**
 * Copies a release to another project, whose user then owns the application's files. A file system that can share blocks shares them. The
 * release gets its name only once it is on disk; a new start of the builder removes what a crash leaves.
 */
export async function adopt(
  { releasesDir, buildsDir, sandbox }: Pick<ProcessBuilderOptions, "releasesDir" | "buildsDir" | "sandbox">,
  { project_id, image_ref }: ProjectImage,
  { id, uid }: Adopting,
): Promise<string | null> {
  const name = image_ref.replace(/^sha256:/, "");
  const [from, to] = [project_id, id].map((project) => join(releasesDir, project, name)) as [string, string];
  if (await hasItsTools(to)) return image_ref;
  if (!(await hasItsTools(from))) return null;
  const folder = await mkdtemp(join(buildsDir, "adopt-"));
  try {
    const copy = join(folder, "release");
    await runOk({ file: "cp", args: ["-a", "--reflink=auto", from, copy] });
    if (process.geteuid?.() === 0) {
      const owner = sandbox.hostUid(uid);
      await runOk({ file: "chown", args: ["-R", "-h", `${owner}:${owner}`, join(copy, treeName)] });
    }
    await syncFileSystem(copy);
    await mkdir(join(releasesDir, id), { recursive: true, mode: 0o755 });
    await moved(copy, to);
    await syncFolder(join(releasesDir, id));
    return image_ref;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
