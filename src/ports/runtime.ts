import type { Readable } from "node:stream";
import type { MachinePool } from "./machines.ts";
import type { FolderEntry, FolderPlace } from "../kit/look-into-folder.ts";
import type { Move, Moved } from "../kit/move-below.ts";
import type { ServerAddress } from "../kit/server-address.ts";

/**
 * Runs released images. A workload is one process type of one deployment: a command of an image with an environment. The caller decides
 * which replicas run and numbers their starts; the runtime starts, reports and stops them. Instances outlive the process that started them:
 * after a restart, `observe` reports them again. Every method may be called again after a crash at any point. Faults are thrown; what an
 * application does (exit, crash, refuse to start) is reported by `observe`, never thrown.
 */
export interface Runtime {
  /** Present when the runtime runs replicas on several machines. */
  readonly machines?: MachinePool | undefined;
  /** Returns what this runtime isolates on this machine and which parts are missing. It tries each part for real, once. */
  describe(): Promise<RuntimeDescription>;
  /** Returns the part without which nothing starts now, such as an engine that does not answer; undefined if there is none. */
  readonly unavailable?: ((runtime?: string) => Promise<MissingPart | undefined>) | undefined;
  /**
   * Starts this attempt of a replica and resolves when its process is started; the caller checks its health. An attempt that already
   * exists, running or exited, is returned unchanged. An older attempt of the ordinal is stopped first and its network is freed.
   */
  start(workload: Workload, replica: ReplicaStart): Promise<Instance>;
  /** Returns the newest attempt of each existing replica, including exited ones. One cheap call covers all workloads. */
  observe(): Promise<readonly Instance[]>;
  /**
   * Stops these ordinals, or the whole workload: SIGTERM, a wait of up to `graceMs`, SIGKILL. The instances remain as exited ones, so that
   * their last output can be read and their addresses are not reused. Idempotent; a missing workload is not an error.
   */
  stop(workloadId: string, graceMs: number, ordinals?: readonly number[]): Promise<void>;
  /** Removes these ordinals, or the whole workload: stops what still runs, frees networks, deletes output. Idempotent. */
  remove(workloadId: string, ordinals?: readonly number[]): Promise<void>;
  /** Runs one command in the image (a release command) with the workload's environment and waits for it to exit. */
  runOnce(workload: Workload, task: OneOffCommand): Promise<OneOffResult>;
  /**
   * Returns what an instance wrote since `cursor` (null: from the first byte still kept). Complete lines only; after the instance has
   * exited, also a last line without a line feed. Only the start of a line over 128 KiB is returned; shorter lines are never cut.
   */
  readOutput(instance: InstanceKey, cursor: string | null): Promise<OutputChunk>;
  /** Allows the runtime to delete output up to `cursor`, because the caller has stored it. */
  discardOutput(instance: InstanceKey, cursor: string): Promise<void>;
  /** Returns the address at which an application reaches a server of its `reach`. `runtime` as in `Workload`. */
  endpointFor(server: ServerAddress, runtime?: string): ServerAddress;
  /** Calls back as soon as an instance may have exited or appeared: a hint, `observe` is authoritative. Returns the end of it. */
  onChange(listener: (workloadId: string) => void): () => void;
  /** Deletes a project's image; another project's with the same content stays. Idempotent. Throws while an instance uses it. */
  removeImage(image: ProjectImage): Promise<void>;
  /** Returns the TCP ports on which a workload's living instances listen, to explain why one is unreachable. Empty when they can't be determined. */
  listening(workloadId: string): Promise<readonly ListeningPort[]>;
  /** Runs the image's own `HEALTHCHECK` once, inside the instance as the application's user. `none`: the image has no check. */
  checkHealth(instance: InstanceKey): Promise<OwnCheck>;
  /** Returns CPU time, memory and process counts of living instances. */
  measure(workloadId: string): Promise<readonly InstanceUsage[]>;
  /** Returns the disk usage of a storage folder in bytes, null when that took too long. Reads all of it: call it rarely. */
  storageBytes(project: StorageOwner): Promise<number | null>;
  hasStorage(project: StorageOwner): Promise<boolean>;
  /** Limits a storage folder by the file system. Resolves with its usage, null without such quotas. Idempotent. */
  limitStorage(project: StorageOwner, bytes: number): Promise<number | null>;
  /** Returns how many bytes of disk a project's running replicas use for changes to their own file systems. */
  changedBytes(projectId: string): Promise<number>;
  /** Streams a storage folder as a tar archive; null without one. Fails with `FilesRefused` when some cannot be read. */
  readStorage(project: StorageOwner, signal: AbortSignal): Promise<Readable | null>;
  /**
   * Unpacks such an archive into `.restored/<name>` of the storage folder, or without a name into the folder itself, which it creates, as
   * the project's user. Rejects with the stream's error, or with `FilesRefused`; the caller then removes what was unpacked.
   */
  writeStorage(project: StorageOwner, name: string | null, archive: Readable, signal: AbortSignal): Promise<void>;
  /** Deletes a project's storage folder for good. Idempotent. No instance of the project may be running. */
  removeStorage(project: StorageOwner): Promise<void>;
  /** Lists a folder of a project's storage folder by name, as the project's user; undefined when there is none. Follows no link. */
  listStored(project: StorageOwner, place: StoredPlace): Promise<readonly FolderEntry[] | undefined>;
  /** Reads a part of a file there, in the same way. */
  readStored(project: StorageOwner, place: StoredPlace): Promise<Buffer | undefined>;
  /** Returns what a path there is, in the same way; undefined when there is nothing. */
  statStored(project: StorageOwner, path: string): Promise<FolderEntry | undefined>;
  /**
   * Moves a file or folder there, as the project's user, into folders that it creates. With `kept` it replaces what is there, a file by a
   * file in one step. Rejects with `FilesRefused`, also when a link is on the way.
   */
  moveStored(project: StorageOwner, move: Move, signal: AbortSignal): Promise<Moved>;
  /** Deletes a file or folder below a project's storage folder, as the project's user. Returns false when it does not exist. */
  removeStored(project: StorageOwner, path: string, signal: AbortSignal): Promise<boolean>;
}

export interface Workload {
  /** Unique among all process types of all deployments; `[A-Za-z0-9_.-]`. */
  readonly id: string;
  /** Which of the image's commands it runs: `web`, or another type of the Procfile. */
  readonly process: string;
  readonly project_id: string;
  /** Small, unique and never reused; uids and addresses derive from it. */
  readonly project_number: number;
  readonly image_ref: string;
  /** On a machine with several runtimes: the one that the image is for. Defaults to the first. */
  readonly runtime?: string;
  /** The port inside the sandbox to listen on (`PORT`). Null: the application gets no `PORT` and has no address. */
  readonly port: number | null;
  /** The whole environment except `PORT` and `HOST`, which the runtime sets. May hold secrets. */
  readonly env: Readonly<Record<string, string>>;
  readonly limits: WorkloadLimits;
  /** Servers that the application can reach, in every network mode, at the addresses that `endpointFor` returns. */
  readonly reach: readonly ServerAddress[];
  /** Whether instances may write to the storage folder. `none`: they get none, so they can run on any machine. */
  readonly storage_access: "open" | "read_only" | "none";
  /** Rows say that the storage folder holds files: a start throws `PartMissing` instead of creating it. */
  readonly has_stored_files?: boolean;
  /** Whose storage folder a one-off command gets, when it is not the project's: a copy that only this command sees. */
  readonly storage_id?: string;
}

export type StoredPlace = Omit<FolderPlace, "folder">;

export interface StorageOwner {
  readonly project_id: string;
  readonly project_number: number;
}

export interface ProjectImage {
  readonly project_id: string;
  readonly image_ref: string;
}

export interface WorkloadLimits {
  readonly memoryBytes: number;
  readonly processes: number;
  /** In processors: 1.5 is one and a half. */
  readonly cpus: number;
}

export interface InstanceKey {
  readonly workload_id: string;
  readonly ordinal: number;
  /** The number of this start of the ordinal: 1, 2, 3 … */
  readonly attempt: number;
}

/** Which replica to start, and the number of this start. */
export type ReplicaStart = Omit<InstanceKey, "workload_id">;

export interface Instance extends InstanceKey {
  readonly project_id: string;
  readonly image_ref: string;
  readonly state: "running" | "exited";
  /** Where the edge reaches the instance. Null when it has exited or has no port. */
  readonly address: InstanceAddress | null;
  readonly started_at: Date;
  /** Changes whenever the instance may have written output. */
  readonly output_mark: string;
  readonly exit: InstanceExit | null;
}

export interface InstanceAddress {
  readonly host: string;
  readonly port: number;
}

export interface InstanceExit {
  /** 128 + signal when a signal ended it. Null when the instance vanished (the machine rebooted, its shim was killed). */
  readonly code: number | null;
  readonly out_of_memory: boolean;
  /** The runtime gave the instance up because its machine is lost: not the application's fault. */
  readonly machine_lost?: true;
  /** It ended with its machine, or with the service that Berth is, stopped in order or not: not the application's fault. */
  readonly stopped?: true;
  readonly at: Date;
}

export type OwnCheck =
  | { readonly outcome: "none" | "healthy" }
  /** `detail` completes a sentence that starts with the check's name. */
  | { readonly outcome: "failed"; readonly detail: string };

export interface ListeningPort {
  readonly port: number;
  /** Bound to loopback: only processes of the instance can connect. */
  readonly loopback: boolean;
}

export interface OneOffCommand {
  readonly command: string;
  readonly timeoutMs: number;
  readonly silenceMs: number;
  readonly signal: AbortSignal;
  /** Receives output. The command is paused while a returned promise is pending. */
  readonly onOutput: (chunk: Buffer) => void | Promise<void>;
  /** Gives the command a terminal with this input. Without it the command has no input. */
  readonly terminal?: Terminal;
}

/** A person's terminal. Ctrl-C and the like are bytes of its input. */
export interface Terminal {
  /** The value of TERM. */
  readonly type: string;
  readonly size: TerminalSize;
  /** Ending the stream sends Ctrl-D. */
  readonly input: Readable;
  /** Calls back with each new size. */
  onResize(listener: (size: TerminalSize) => void): void;
}

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

export type OneOffResult =
  | { readonly outcome: "exited"; readonly code: number; readonly out_of_memory: boolean }
  | { readonly outcome: "timed_out" | "silent" | "cancelled" };

export interface OutputChunk {
  /** Whole lines without their line feeds. */
  readonly lines: readonly string[];
  readonly cursor: string;
  /** Bytes that a limit discarded since the last read. */
  readonly dropped_bytes: number;
}

export interface InstanceUsage extends InstanceKey {
  readonly memory_bytes: number;
  /** CPU time since the instance started. */
  readonly cpu_seconds: number;
  readonly processes: number;
}

export interface RuntimeDescription {
  /** The adapter: `process`, `docker` or `swarm`; several names are joined by commas. */
  readonly name: string;
  /** How the network is isolated, in the adapter's own word, such as `veth` or `engine`; `shared`: with the machine and all others. */
  readonly network: string;
  /** Parts of the full isolation that are in effect here, such as `namespaces`, `seccomp`, `memory_limit`. */
  readonly isolation: readonly string[];
  /** Parts that are not in effect, each with its consequence and remedy. */
  readonly missing: readonly MissingPart[];
}

export interface MissingPart {
  readonly part: string;
  readonly effect: string;
  readonly remedy: string;
}
