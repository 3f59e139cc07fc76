import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

/** Folders of system programs that an ordinary user's PATH often leaves out. */
const systemFolders = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin"];

/**
 * Returns the absolute path of a program, searching `searchPath` (colon-separated) and then the system's folders; null if it is in neither.
 */
export function findProgram(name: string, searchPath: string): string | null {
  const folders = [...searchPath.split(delimiter).filter(isAbsolute), ...systemFolders];
  return folders.map((folder) => join(folder, name)).find(isExecutableFile) ?? null;
}

/** Like `findProgram`, but only below /usr: sandboxes that run the program see /usr, and nothing that a user installed in a home folder. */
export function findSystemProgram(name: string, searchPath: string): string | null {
  const folders = [...searchPath.split(delimiter).filter(isAbsolute), ...systemFolders];
  const found = folders.map((folder) => join(folder, name)).filter(isExecutableFile);
  return found.find((path) => path.startsWith("/usr/") && realpathSync(path).startsWith("/usr/")) ?? null;
}

/** Returns whether the path is a file that this user may execute. */
export function isExecutableFile(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
