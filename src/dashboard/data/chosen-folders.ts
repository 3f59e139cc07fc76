import type { PackedFolder } from "./packed-folder.ts";

/** The folders that were chosen and are not deployed yet, by their project's slug. */
export const chosenFolders = new Map<string, PackedFolder>();
