import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

/** Folders of system programs that an ordinary user's PATH often leaves out. */
const systemFolders = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin"];

/** The absolute path of a program: on `searchPath` (colon-separated) first, then in the system's folders; null when nowhere. */
export function findProgram(name: string, searchPath: string): string | null {
  const folders = [...searchPath.split(delimiter).filter(isAbsolute), ...systemFolders];
  return folders.map((folder) => join(folder, name)).find(isExecutableFile) ?? null;
}

/** Like `findProgram`, for programs that sandboxes run: they see /usr, and nothing of what a user installed below a home. */
export function findSystemProgram(name: string, searchPath: string): string | null {
  const folders = [...searchPath.split(delimiter).filter(isAbsolute), ...systemFolders];
  const found = folders.map((folder) => join(folder, name)).filter(isExecutableFile);
  return found.find((path) => path.startsWith("/usr/") && realpathSync(path).startsWith("/usr/")) ?? null;
}

/** Whether the path names a file that this user may execute. */
export function isExecutableFile(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
