/**
 * Runs released images. A workload is one deployment: some replicas of one image with one environment.
 * It says what ought to run; the runtime makes it so and reports what really runs.
 * Instances outlive the process that started them: after a restart, `list` finds them again.
 *
 * Every method may be called again after a crash at any point. Faults are thrown; what an application does
 * (exit, crash, refuse to start) is reported by `observe`, never thrown.
 */
export interface Runtime {
  /** What this runtime isolates on this machine, and which parts are missing. Probed once, really tried. */
  describe(): Promise<RuntimeDescription>;
  /**
   * Makes `replicas` instances of the workload exist, with ordinals from 0. Starts the ordinals that were never started, never touches a living one,
   * stops surplus ordinals. An exited instance stays as it is (seen by `observe`) until `restart`.
   * Resolves when processes are started; whether they are healthy is the caller's question.
   */
  apply(workload: Workload): Promise<void>;
  /** Starts an exited replica of the workload anew. A living one is left alone. */
  restart(workload: Workload, ordinal: number): Promise<void>;
  /** All instances of a workload, exited ones too; empty when there are none. */
  observe(workloadId: string): Promise<readonly Instance[]>;
  /** The ids of all workloads that have instances here, exited ones too. */
  list(): Promise<readonly string[]>;
  /** SIGTERM, up to `graceMs`, SIGKILL. The instances stay as exited ones, so that their last output can be read. Idempotent; a missing workload is fine. */
  stop(workloadId: string, graceMs: number): Promise<void>;
  /**
   * Forgets a stopped workload: its instances and what is left of their output. Ends it first if it still runs. Idempotent.
   * With `forGood` it never comes back, so that not even the numbers of its attempts are remembered.
   */
  remove(workloadId: string, options?: { readonly forGood: boolean }): Promise<void>;
  /** Runs one command in the image (a release command) with the workload's environment and waits for its end. */
  runOnce(workload: Workload, task: OneOffCommand): Promise<OneOffResult>;
  /** What an instance wrote since `cursor` (null: from its first byte still kept). Complete lines only; when it has ended, also a last one without a line feed. Of a line beyond 128 KiB only the beginning comes, uncut below. */
  readOutput(instance: InstanceKey, cursor: string | null): Promise<OutputChunk>;
  /** The caller has stored the output up to `cursor`: the runtime may throw it away. */
  discardOutput(instance: InstanceKey, cursor: string): Promise<void>;
  /** Calls back when an instance ended or appeared, as soon as it is known. A hint only: `observe` is the truth. */
  onChange(listener: (workloadId: string) => void): () => void;
  /** Deletes what the runtime keeps of a project's image; another project's of the same content stays. Idempotent; refuses (throws) while an instance uses it. */
  removeImage(image: ProjectImage): Promise<void>;
  /** The TCP ports that living instances of a workload listen on, to tell why nobody reaches one; empty when that cannot be seen. */
  listening(workloadId: string): Promise<readonly ListeningPort[]>;
  /** CPU, memory and process counts of living instances. */
  measure(workloadId: string): Promise<readonly InstanceUsage[]>;
  /**
   * What a project's storage folder takes on disk, in bytes, at least a block for each file. Reads all of it, so ask rarely. Null
   * when that took too long.
   */
  storageBytes(project: StorageOwner): Promise<number | null>;
  /** Deletes a project's storage folder for good. Idempotent; no instance of the project may run. */
  removeStorage(project: StorageOwner): Promise<void>;
  /** Deletes a file or folder below a project's storage folder, as the project's user. False when there is none. */
  removeStored(project: StorageOwner, path: string, signal: AbortSignal): Promise<boolean>;
}

export interface Workload {
  /** The deployment's id. */
  readonly id: string;
  readonly project_id: string;
  /** Small, unique and never reused: uids and addresses are made from it. */
  readonly project_number: number;
  readonly image_ref: string;
  readonly replicas: number;
  /** The port inside the sandbox that the application is asked to listen on (its `PORT`). */
  readonly port: number;
  /** The whole environment but `PORT` and `HOST`, which the runtime sets. May hold secrets. */
  readonly env: Readonly<Record<string, string>>;
  readonly limits: WorkloadLimits;
  /** Services on this host that the application reaches at 127.0.0.1:<port>, in every network mode. */
  readonly reach: readonly LocalService[];
  /** Whether instances that are started from now on may write into the project's storage folder. */
  readonly storage_access: "open" | "read_only";
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

/** A service that listens on 127.0.0.1:<port> of the host and on a unix socket; the sandbox sees it at 127.0.0.1:<port>. */
export interface LocalService {
  readonly port: number;
  readonly socket_path: string;
}

export interface InstanceKey {
  readonly workload_id: string;
  readonly ordinal: number;
  /** Which start of this ordinal: 1, 2, 3 … No number comes twice, not even after the workload was removed, unless that was for good. */
  readonly attempt: number;
}

export interface Instance extends InstanceKey {
  readonly project_id: string;
  readonly image_ref: string;
  readonly state: "running" | "exited";
  /** Where the edge reaches it. Null when it runs no more. */
  readonly address: InstanceAddress | null;
  readonly started_at: Date;
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
  readonly at: Date;
}

export interface ListeningPort {
  readonly port: number;
  /** Nobody outside of the instance reaches it. */
  readonly loopback: boolean;
}

export interface OneOffCommand {
  readonly command: string;
  readonly timeoutMs: number;
  readonly silenceMs: number;
  readonly signal: AbortSignal;
  readonly onOutput: (chunk: Buffer) => void;
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
  /** The adapter: `process`, `docker`, `swarm`. */
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
