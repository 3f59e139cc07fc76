import type { Readable } from "node:stream";
import type { MachinePool } from "./machines.ts";
import type { ServerAddress } from "../kit/server-address.ts";

/**
 * Runs released images on this machine. A workload is one process type of one deployment: a command of an image with an environment. The caller decides which replicas
 * run and numbers their starts; the runtime starts, reports and ends them.
 * Instances outlive the process that started them: after a restart, `observe` reports them again.
 *
 * Every method may be called again after a crash at any point. Faults are thrown; what an application does
 * (exit, crash, refuse to start) is reported by `observe`, never thrown.
 */
export interface Runtime {
  /** Where it runs replicas on many machines. */
  readonly machines?: MachinePool | undefined;
  /** What this runtime isolates on this machine, and which parts are missing. Probed once, really tried. */
  describe(): Promise<RuntimeDescription>;
  /**
   * Starts this attempt of a replica and resolves when its process is started; health is the caller's question. An attempt that exists
   * already, running or exited, is returned as it is. An older attempt of the ordinal is ended first and its network is freed.
   */
  start(workload: Workload, replica: ReplicaStart): Promise<Instance>;
  /** The newest attempt of each replica that exists on this machine, exited ones included. One cheap call for all workloads. */
  observe(): Promise<readonly Instance[]>;
  /**
   * SIGTERM, up to `graceMs`, SIGKILL: for these ordinals, or for all of the workload. The instances stay as exited ones, so that their
   * last output can be read and no other instance gets their address. Idempotent; a missing workload is fine.
   */
  stop(workloadId: string, graceMs: number, ordinals?: readonly number[]): Promise<void>;
  /** Forgets these ordinals, or the whole workload: ends what still runs, frees networks, deletes output. Idempotent. */
  remove(workloadId: string, ordinals?: readonly number[]): Promise<void>;
  /** Runs one command in the image (a release command) with the workload's environment and waits for its end. */
  runOnce(workload: Workload, task: OneOffCommand): Promise<OneOffResult>;
  /** What an instance wrote since `cursor` (null: from its first byte still kept). Complete lines only; when it has ended, also a last one without a line feed. Of a line beyond 128 KiB only the beginning comes, uncut below. */
  readOutput(instance: InstanceKey, cursor: string | null): Promise<OutputChunk>;
  /** The caller has stored the output up to `cursor`: the runtime may throw it away. */
  discardOutput(instance: InstanceKey, cursor: string): Promise<void>;
  /** Where an application finds a server of its `reach`. `runtime` as in `Workload`. */
  endpointFor(server: ServerAddress, runtime?: string): ServerAddress;
  /** Calls back when an instance ended or appeared, as soon as it is known. A hint only: `observe` is the truth. */
  onChange(listener: (workloadId: string) => void): () => void;
  /** Deletes what the runtime keeps of a project's image; another project's of the same content stays. Idempotent; refuses (throws) while an instance uses it. */
  removeImage(image: ProjectImage): Promise<void>;
  /** The TCP ports that living instances of a workload listen on, to explain why one is not reached; empty when that cannot be seen. */
  listening(workloadId: string): Promise<readonly ListeningPort[]>;
  /**
   * Runs the check that an instance's image brings (`HEALTHCHECK` of a Dockerfile) once, inside of the instance and as the application.
   * Resolves with `none` where the image brings no check.
   */
  checkHealth(instance: InstanceKey): Promise<OwnCheck>;
  /** CPU, memory and process counts of living instances. */
  measure(workloadId: string): Promise<readonly InstanceUsage[]>;
  /**
   * What a project's storage folder takes on disk, in bytes, at least a block for each file. Reads all of it, so ask rarely. Null
   * when that took too long.
   */
  storageBytes(project: StorageOwner): Promise<number | null>;
  /**
   * Lets the file system itself refuse what goes beyond `bytes` in a project's storage folder. Resolves with what the folder takes, or null
   * where the file system keeps no such limits. Idempotent.
   */
  limitStorage(project: StorageOwner, bytes: number): Promise<number | null>;
  /** How much of the disk the running replicas of a project take with changes to their own folders. */
  changedBytes(projectId: string): Promise<number>;
  /** Deletes a project's storage folder for good. Idempotent; no instance of the project may run. */
  removeStorage(project: StorageOwner): Promise<void>;
  /** Deletes a file or folder below a project's storage folder, as the project's user. False when there is none. */
  removeStored(project: StorageOwner, path: string, signal: AbortSignal): Promise<boolean>;
}

export interface Workload {
  /** Unique among all process types of all deployments; `[A-Za-z0-9_.-]`. */
  readonly id: string;
  /** Which of the image's commands it runs: `web`, or another type of the Procfile. */
  readonly process: string;
  readonly project_id: string;
  /** Small, unique and never reused: uids and addresses are made from it. */
  readonly project_number: number;
  readonly image_ref: string;
  /** Where a machine has several runtimes: the one that the image is for. Absent: the first. */
  readonly runtime?: string;
  /** The port inside the sandbox that the application is asked to listen on (its `PORT`). Null: it gets none and has no address. */
  readonly port: number | null;
  /** The whole environment but `PORT` and `HOST`, which the runtime sets. May hold secrets. */
  readonly env: Readonly<Record<string, string>>;
  readonly limits: WorkloadLimits;
  /** Servers that the application reaches at what `endpointFor` answers, in every network mode. */
  readonly reach: readonly ServerAddress[];
  /**
   * Whether instances that are started from now on may write into the project's storage folder. `none`: they get no storage, so that
   * they may run on any machine.
   */
  readonly storage_access: "open" | "read_only" | "none";
}

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
  /** Of one processor: 1.5 is one and a half. */
  readonly cpus: number;
}

export interface InstanceKey {
  readonly workload_id: string;
  readonly ordinal: number;
  /** Which start of this ordinal: 1, 2, 3 … */
  readonly attempt: number;
}

/** Which replica is started, and the number of this start. */
export type ReplicaStart = Omit<InstanceKey, "workload_id">;

export interface Instance extends InstanceKey {
  readonly project_id: string;
  readonly image_ref: string;
  readonly state: "running" | "exited";
  /** Where the edge reaches it. Null when it runs no more, or has no port. */
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
  /** 128 + signal when a signal ended it; null when it vanished (the machine rebooted, its shim was killed). */
  readonly code: number | null;
  readonly out_of_memory: boolean;
  /** It was given up because its machine is away: no fault of the application's. */
  readonly machine_lost?: true;
  readonly at: Date;
}

export type OwnCheck =
  | { readonly outcome: "none" | "healthy" }
  /** `detail` completes a sentence that begins with the check's name. */
  | { readonly outcome: "failed"; readonly detail: string };

export interface ListeningPort {
  readonly port: number;
  /** Only processes of the instance reach it. */
  readonly loopback: boolean;
}

export interface OneOffCommand {
  readonly command: string;
  readonly timeoutMs: number;
  readonly silenceMs: number;
  readonly signal: AbortSignal;
  /** The command waits while a promise that this returns is pending. */
  readonly onOutput: (chunk: Buffer) => void | Promise<void>;
  /** The command gets a terminal with this input; without one it has no input. */
  readonly terminal?: Terminal;
}

/** The terminal of a person. Ctrl-C and the like are bytes of its input. */
export interface Terminal {
  /** The value of TERM. */
  readonly type: string;
  readonly size: TerminalSize;
  /** Its end is Ctrl-D. */
  readonly input: Readable;
  /** Calls back for each new size. */
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
  /** Whole lines without their line feed, each with the time it was read at. */
  readonly lines: readonly string[];
  readonly cursor: string;
  /** Bytes that were lost to a limit since the last read. */
  readonly dropped_bytes: number;
}

export interface InstanceUsage extends InstanceKey {
  readonly memory_bytes: number;
  /** Since the instance started. */
  readonly cpu_seconds: number;
  readonly processes: number;
}

export interface RuntimeDescription {
  /** The adapter: `process`, `docker`, `swarm`; several are joined by commas. */
  readonly name: string;
  readonly network: "veth" | "pasta" | "shared" | "engine";
  /** Parts of the full isolation that hold here, such as `namespaces`, `seccomp`, `memory_limit`. */
  readonly isolation: readonly string[];
  /** Parts that do not, each with what follows and what to do. */
  readonly missing: readonly MissingPart[];
}

export interface MissingPart {
  readonly part: string;
  readonly effect: string;
  readonly remedy: string;
}
