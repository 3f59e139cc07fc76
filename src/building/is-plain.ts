import { lstatSync } from "node:fs";
import { join } from "node:path";

/** Returns whether a path below `root` exists without any link on the way: the project's commands may have created links anywhere. */
export function isPlain(root: string, path: string, kind: "file" | "folder"): boolean {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) return false;
  let current = root;
  for (const [index, part] of parts.entries()) {
    current = join(current, part);
    const stats = lstatSync(current, { throwIfNoEntry: false });
    const wantsFile = index === parts.length - 1 && kind === "file";
    if (!stats || (wantsFile ? !stats.isFile() : !stats.isDirectory())) return false;
  }
  return true;
}
