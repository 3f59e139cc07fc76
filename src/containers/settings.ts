import { createHash } from "node:crypto";
import { chownSync, mkdirSync } from "node:fs";
import type { DockerApi } from "../kit/docker-api.ts";
import type { Log } from "../kit/log.ts";
import type { ProjectQuota } from "../kit/project-quota.ts";
import type { InstanceKey, StorageOwner } from "../ports/runtime.ts";

export interface DockerRuntimeOptions {
  readonly socketPath: string;
  /** What the runtime keeps beside the engine: copies of application folders, their private layers, the block of addresses. */
  readonly stateDir: string;
  /** The persistent folder of a project; made, and given to the project's user, at every start. */
  readonly storageDir: (projectId: string, projectNumber: number) => string;
  readonly quota?: ProjectQuota | null;
  /** The project's user is this plus `project_number`. Default 20000. */
  readonly uidBase?: number;
  /** How much an instance may write to its own folder. Default 1 GiB. */
  readonly layerBytes?: number;
  /** The engine's runtime of applications, such as `runsc`; the engine's default when null. */
  readonly ociRuntime?: string | null;
  /** Servers that applications reach although their address is closed, or this machine's. */
  readonly open?: readonly { readonly address: string; readonly port: number }[];
  /** Ports of the edge, which applications reach at this machine's addresses as every visitor does. */
  readonly edgePorts?: readonly number[];
  /** A certificate (PEM file) that applications trust besides the system's. */
  readonly caFile?: string;
  /** The certificate (PEM file) of the authority that signed the certificate of the projects' database server. */
  readonly databaseCaFile?: string;
  readonly log?: Log;
}

/** What all parts of the runtime share. */
export interface DockerContext {
  readonly options: DockerRuntimeOptions;
  readonly api: DockerApi;
  /** Tells the containers and networks of this data folder from others of the engine. */
  readonly tag: string;
  /** The file of certificates that applications trust; null where the machine has none. */
  readonly certificates: string | null;
  /** What the engine says of itself; asked for once it answers. */
  engine(): Promise<EngineFacts>;
  /** One action at a time for each replica, and for each image. */
  readonly runExclusive: <T>(key: string, work: () => Promise<T>) => Promise<T>;
}

export interface EngineFacts {
  readonly rootDir: string;
  readonly processors: number;
  readonly version: string;
  readonly securityOptions: readonly string[];
  /** Whether containers go on while the engine is restarted. */
  readonly liveRestore: boolean;
  readonly limits: { readonly memory: boolean; readonly processes: boolean; readonly cpus: boolean };
  /** Of the host, the user that is 0 in containers: with user namespaces another than 0. */
  readonly firstUid: number;
}

const defaultUidBase = 20_000;

/** The user of a project's processes, as containers see it. */
export const uidOf = (options: DockerRuntimeOptions, { project_number }: Pick<StorageOwner, "project_number">) =>
  (options.uidBase ?? defaultUidBase) + project_number;

export const tagOf = (stateDir: string): string => createHash("sha256").update(stateDir).digest("hex").slice(0, 4);

/** The number of a storage folder's quota: those of another data folder on the same file system differ in the upper bits. */
export function quotaId(stateDir: string, projectNumber: number): number {
  const tag = createHash("sha256").update(stateDir).digest().readUInt16BE(0) & 0xfff;
  return tag * 2 ** 19 + 1 + projectNumber;
}

export const containerName = (tag: string, { workload_id, ordinal, attempt }: InstanceKey): string =>
  `berth-${tag}-${workload_id}-${ordinal}-${attempt}`;

/** Makes a project's storage folder and gives it to the project's user. */
export async function makeStorage(context: DockerContext, owner: StorageOwner): Promise<string> {
  const folder = context.options.storageDir(owner.project_id, owner.project_number);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const uid = (await context.engine()).firstUid + uidOf(context.options, owner);
  chownSync(folder, uid, uid);
  return folder;
}
