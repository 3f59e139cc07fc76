import { existsSync, mkdirSync } from "node:fs";
import { basename } from "node:path";
import { run, runOk } from "./exec.ts";
import { folderBytes } from "./folder-bytes.ts";
import { readFolder } from "./folder-tar.ts";
import { listBelow, readBelow, statBelow, type FolderPlace } from "./look-into-folder.ts";
import { missingStorage } from "./part-missing.ts";
import { quotaId, type ProjectQuota } from "./project-quota.ts";

/** Creates a project's storage folder, named by the project's id. Throws `PartMissing` if it is missing although rows say it holds files. */
export function ensureStorageFolder(folder: string, hasFiles: boolean): void {
  if (hasFiles && !existsSync(folder)) throw missingStorage(basename(folder));
  mkdirSync(folder, { recursive: true, mode: 0o700 });
}

interface Place {
  readonly stateDir: string;
  readonly storageDir: (projectId: string, projectNumber: number) => string;
  readonly quota?: ProjectQuota | null;
}

interface Owner {
  readonly project_id: string;
  readonly project_number: number;
}

/** Projects' storage folders on this machine's disk, as the port of runtimes describes them: what needs no sandbox. */
export class StorageFolders {
  readonly #place: Place;

  constructor(place: Place) {
    this.#place = place;
  }

  storageFolder({ project_id, project_number }: Owner): string {
    return this.#place.storageDir(project_id, project_number);
  }

  async readStorage(owner: Owner, signal: AbortSignal) {
    return readFolder(this.storageFolder(owner), signal);
  }

  async removeStorage(owner: Owner): Promise<void> {
    const folder = this.storageFolder(owner);
    if (!existsSync(folder)) return;
    // An application may have removed its own user's permissions on its folders.
    await run({ file: "chmod", args: ["--recursive", "u+rwX", folder] });
    await runOk({ file: "rm", args: ["--recursive", "--force", "--one-file-system", "--", folder] });
  }

  async limitStorage(owner: Owner, bytes: number): Promise<number | null> {
    const { quota, stateDir } = this.#place;
    if (!quota) return null;
    const folder = this.storageFolder(owner);
    ensureStorageFolder(folder, false);
    return quota.limit(folder, quotaId(stateDir, owner.project_number), bytes);
  }

  async hasStorage(owner: Owner): Promise<boolean> {
    return existsSync(this.storageFolder(owner));
  }

  storageBytes(owner: Owner): Promise<number | null> {
    return folderBytes(this.storageFolder(owner));
  }

  listStored(owner: Owner, place: Omit<FolderPlace, "folder">) {
    return listBelow({ ...place, folder: this.storageFolder(owner) });
  }

  readStored(owner: Owner, place: Omit<FolderPlace, "folder">) {
    return readBelow({ ...place, folder: this.storageFolder(owner) });
  }

  statStored(owner: Owner, path: string) {
    return statBelow({ path, folder: this.storageFolder(owner) });
  }
}
