import { createHash } from "node:crypto";
import { chownSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type { Log } from "../../kit/log.ts";
import type { ProjectQuota } from "../../kit/project-quota.ts";
import type { Sandbox, SandboxSpec } from "../../sandbox/spec.ts";
import type { Workload } from "../../ports/runtime.ts";
import { openRelease } from "./release.ts";

export interface ProcessRuntimeOptions {
  readonly sandbox: Sandbox;
  /** Where instances are kept. */
  readonly stateDir: string;
  readonly releasesDir: string;
  /** What relative sources of a release's binds are relative to. Default the parent of `releasesDir`. */
  readonly dataDir?: string;
  /** The persistent folder of a project; made, and given to the project's user, at every start. */
  readonly storageDir: (projectId: string, projectNumber: number) => string;
  /** Limits of folders that the file system of the storage folders keeps itself, where it does. */
  readonly quota?: ProjectQuota | null;
  /** The project's user is this plus `project_number`. Default 20000. */
  readonly uidBase?: number;
  /** How much unread output an instance keeps; older output is dropped. Default 32 MiB. */
  readonly maxOutputBytes?: number;
  readonly log?: Log;
}

const defaultUidBase = 20_000;

export const uidOf = (options: ProcessRuntimeOptions, project: Pick<Workload, "project_number">): number =>
  (options.uidBase ?? defaultUidBase) + project.project_number;

/** The number of a storage folder's quota: those of another data folder on the same file system differ in the upper bits. */
export function quotaId(stateDir: string, projectNumber: number): number {
  const tag = createHash("sha256").update(stateDir).digest().readUInt16BE(0) & 0xfff;
  return tag * 2 ** 19 + 1 + projectNumber;
}

/** What a command of the workload's image may see, whether it serves or runs once. */
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
    storageDir: makeStorage(options, workload, uid),
    storageWritable: workload.storage_access === "open",
    command: workload.process === "web" ? manifest.web_command : (manifest.processes?.[workload.process] ?? null),
  };
}

function makeStorage(options: ProcessRuntimeOptions, workload: Workload, uid: number): string {
  const folder = options.storageDir(workload.project_id, workload.project_number);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const owner = options.sandbox.hostUid(uid);
  if (process.geteuid?.() === 0) chownSync(folder, owner, owner);
  return folder;
}

/** The user's own command line: the one text that a shell reads, inside the sandbox. */
export const shellWords = (command: string): string[] => ["/bin/sh", "-c", command];
