import { rm } from "node:fs/promises";
import { run, runOk } from "../../../kit/exec.ts";

/** Removes a folder with everything in it. Builds may leave folders that even their owner may not change (Go's module cache is one). */
export async function removeTree(folder: string): Promise<void> {
  try {
    await rm(folder, { recursive: true, force: true });
  } catch {
    await run({ file: "chmod", args: ["--recursive", "u+rwX", folder] });
    // This one also follows paths that are too long to be named at once.
    await runOk({ file: "rm", args: ["--recursive", "--force", "--", folder] });
  }
}
