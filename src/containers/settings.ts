import { createHash } from "node:crypto";
import { chownSync } from "node:fs";
import type { DockerApi } from "../kit/docker-api.ts";
import type { Log } from "../kit/log.ts";
import { ensureStorageFolder } from "../kit/storage-folder.ts";
import type { ProjectQuota } from "../kit/project-quota.ts";
import type { InstanceKey, StorageOwner, Workload } from "../ports/runtime.ts";
import type { TrustedCertificates } from "../sandbox/certificates.ts";

export interface DockerRuntimeOptions {
  readonly socketPath: string;
  /** Where the runtime stores copies of application folders, their private layers and the number of its address block. */
  readonly stateDir: string;
  /** Path of a project's persistent folder, which each start creates and gives to the project's user. */
  readonly storageDir: (projectId: string, projectNumber: number) => string;
  readonly quota?: ProjectQuota | null;
  /** A project's uid is this plus `project_number`. Default 20000. */
  readonly uidBase?: number;
  /** How many bytes an instance may write to its own folder. Default 1 GiB. */
  readonly layerBytes?: number;
  /** OCI runtime for applications, such as `runsc`; null for the engine's default. */
  readonly ociRuntime?: string | null;
  /** Servers that applications may reach although the address is in a closed network or this machine's own. */
  readonly open?: readonly { readonly address: string; readonly port: number }[];
  readonly tenantNetworks?: readonly string[];
  /** The edge's ports, which applications may reach at this machine's addresses, as visitors do. */
  readonly edgePorts?: readonly number[];
  /** A certificate (PEM file) that applications trust in addition to the system's. */
  readonly caFile?: string;
  /** Certificate (PEM file) of the authority that signed the certificate of the projects' database server. */
  readonly databaseCaFile?: string;
  readonly log?: Log;
}

export interface DockerContext {
  readonly options: DockerRuntimeOptions;
  readonly api: DockerApi;
  /** Distinguishes this data folder's containers and networks from others on the engine. */
  readonly tag: string;
  /** Certificates that applications trust; null if the machine has none. */
  readonly certificates: TrustedCertificates | null;
  /** Facts that the engine reports about itself; cached once it has answered. */
  engine(): Promise<EngineFacts>;
  /** Runs one action at a time for each key, which names a replica or an image. */
  readonly runExclusive: <T>(key: string, work: () => Promise<T>) => Promise<T>;
}

export interface EngineFacts {
  readonly rootDir: string;
  readonly processors: number;
  readonly version: string;
  readonly securityOptions: readonly string[];
  /** Whether containers keep running while the engine restarts. */
  readonly liveRestore: boolean;
  readonly limits: { readonly memory: boolean; readonly processes: boolean; readonly cpus: boolean };
  /** Names of the OCI runtimes that the engine offers. */
  readonly ociRuntimes: readonly string[];
  /** Host uid of uid 0 in containers: not 0 if the engine uses user namespaces. */
  readonly firstUid: number;
}

const defaultUidBase = 20_000;

/** Returns the uid of a project's processes as containers see it. */
export const uidOf = (options: DockerRuntimeOptions, { project_number }: Pick<StorageOwner, "project_number">) =>
  (options.uidBase ?? defaultUidBase) + project_number;

export const tagOf = (stateDir: string): string => createHash("sha256").update(stateDir).digest("hex").slice(0, 4);

export const containerName = (tag: string, { workload_id, ordinal, attempt }: InstanceKey): string =>
  `berth-${tag}-${workload_id}-${ordinal}-${attempt}`;

export async function makeStorage(
  context: DockerContext,
  owner: StorageOwner & { readonly has_stored_files?: boolean },
): Promise<string> {
  const folder = context.options.storageDir(owner.project_id, owner.project_number);
  ensureStorageFolder(folder, owner.has_stored_files === true);
  const uid = (await context.engine()).firstUid + uidOf(context.options, owner);
  chownSync(folder, uid, uid);
  return folder;
}

/** Labels by which the runtime finds and identifies its containers without the database, whose rows may be gone. */
export const labels = {
  runtime: "berth.runtime",
  role: "berth.role",
  workload: "berth.workload",
  ordinal: "berth.ordinal",
  attempt: "berth.attempt",
  project: "berth.project",
  image: "berth.image",
  port: "berth.port",
  started: "berth.started_at",
  check: "berth.check",
} as const;

export type ContainerRole = "app" | "network" | "once" | "tree";

export function labelsOf(tag: string, role: ContainerRole, workload: Workload, key: InstanceKey) {
  return {
    [labels.runtime]: tag,
    [labels.role]: role,
    [labels.workload]: workload.id,
    [labels.ordinal]: String(key.ordinal),
    [labels.attempt]: String(key.attempt),
    [labels.project]: workload.project_id,
    [labels.image]: workload.image_ref,
    [labels.port]: workload.port === null ? "" : String(workload.port),
    [labels.started]: new Date().toISOString(),
  };
}
