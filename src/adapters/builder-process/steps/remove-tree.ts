import { rm } from "node:fs/promises";
import { run, runOk } from "../../../kit/exec.ts";

/** Deletes a folder recursively. Builds may leave folders that even their owner may not change, such as Go's module cache. */
export async function removeTree(folder: string): Promise<void> {
  try {
    await rm(folder, { recursive: true, force: true });
  } catch {
    await run({ file: "chmod", args: ["--recursive", "u+rwX", folder] });
    // `rm` also handles paths that are too long for a single system call.
    await runOk({ file: "rm", args: ["--recursive", "--force", "--", folder] });
  }
}
