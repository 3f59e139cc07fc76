import { quoted } from "../kit/quoted.ts";
import type { BuiltFiles, Start } from "./plan.ts";

/** Returns a shell command that runs another one in a folder of the application. */
export function commandIn(folder: string, command: string): string {
  return `cd ${quoted(folder)} && ${command}`;
}

/** Returns how the whole workspace starts what starts like this in its member's folder. */
export function startIn(folder: string, start: Start): Start {
  return start.how === "command"
    ? { ...start, command: commandIn(folder, start.command) }
    : { ...start, folder: start.folder === "." ? folder : `${folder}/${start.folder}` };
}

export function filesBelow(files: BuiltFiles, folder: string): BuiltFiles {
  const at = (path: string) => (path === "." ? folder : `${folder}/${path}`);
  return {
    has: (path) => files.has(at(path)),
    mayExist: (path) => files.mayExist(at(path)),
    folders: (path) => files.folders(at(path)),
    files: (path) => files.files(at(path)),
    pages: (path) => files.pages(at(path)),
  };
}
