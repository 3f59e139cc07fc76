import { chownSync } from "node:fs";
import { dirname } from "node:path";
import type { Log } from "../../kit/log.ts";
import { ensureStorageFolder } from "../../kit/storage-folder.ts";
import type { ProjectQuota } from "../../kit/project-quota.ts";
import type { Sandbox, SandboxSpec } from "../../sandbox/spec.ts";
import type { StorageOwner, Workload } from "../../ports/runtime.ts";
import { openRelease } from "./release.ts";

export interface ProcessRuntimeOptions {
  readonly sandbox: Sandbox;
  readonly stateDir: string;
  readonly releasesDir: string;
  /** The base of relative sources in a release's binds. Default: the parent of `releasesDir`. */
  readonly dataDir?: string;
  /** Returns the persistent folder of a project, which is created and given to the project's user at every start. */
  readonly storageDir: (projectId: string, projectNumber: number) => string;
  /** Limits on the storage folders that the file system itself enforces, where it can. */
  readonly quota?: ProjectQuota | null;
  /** The base of user ids: a project's user is this plus `project_number`. Default 20000. */
  readonly uidBase?: number;
  /** How much unread output to keep for an instance; older output is dropped. Default 32 MiB. */
  readonly maxOutputBytes?: number;
  readonly log?: Log;
}

const defaultUidBase = 20_000;

export const uidOf = (options: ProcessRuntimeOptions, project: Pick<Workload, "project_number">): number =>
  (options.uidBase ?? defaultUidBase) + project.project_number;

/** Returns the sandbox of a command of the workload's image, whether it serves or runs once. */
export function sandboxSpec(
  options: ProcessRuntimeOptions,
  workload: Workload,
  id: string,
): Omit<SandboxSpec, "argv" | "network"> & { command: string | null } {
  const { manifest, treeDir, binds } = openRelease(
    options.releasesDir,
    options.dataDir ?? dirname(options.releasesDir),
    workload,
  );
  const uid = uidOf(options, workload);
  return {
    ...{ id, uid, binds, path: manifest.path, limits: workload.limits },
    env: { ...manifest.env, ...workload.env },
    app: { source: treeDir, access: "private" },
    storageDir: makeStorage(options, { ...workload, project_id: workload.storage_id ?? workload.project_id }, uid),
    ...(manifest.storage === undefined ? {} : { storageTarget: manifest.storage }),
    storageWritable: workload.storage_access === "open",
    command: workload.process === "web" ? manifest.web_command : (manifest.processes[workload.process] ?? null),
  };
}

export function makeStorage(
  options: ProcessRuntimeOptions,
  project: StorageOwner & Pick<Workload, "has_stored_files">,
  uid: number,
): string {
  const folder = options.storageDir(project.project_id, project.project_number);
  ensureStorageFolder(folder, project.has_stored_files === true);
  const owner = options.sandbox.hostUid(uid);
  if (process.geteuid?.() === 0) chownSync(folder, owner, owner);
  return folder;
}

/** The user's own command line, the only text that a shell interprets, inside the sandbox. */
export const shellWords = (command: string): string[] => ["/bin/sh", "-c", command];
