import type { ForwardedSocket } from "../kit/server-address.ts";
import type { Command, ExecOptions, ExecResult, RunOptions } from "../kit/exec.ts";

/** What runs in a sandbox and what it may see. Everything that is not named here, the sandbox does not have. */
export interface SandboxSpec {
  /** Names its control group and its network. Unique among living sandboxes, `[a-z0-9_-]`; the part before the first `-` is its family, see `sweep`. */
  readonly id: string;
  /** The user it runs as when Berth is root (`uidBase + project_number`); an ordinary user's sandboxes run as that user. */
  readonly uid: number;
  readonly argv: readonly string[];
  /** The environment, exact but for the defaults a sandbox adds when they are left out: PATH, HOME, LANG, the CA variables. May hold secrets. */
  readonly env: Readonly<Record<string, string>>;
  /** Mounted at /app. */
  readonly app: SandboxApp | null;
  /** Mounted at /storage, writable by default; sets STORAGE_DIR. */
  readonly storageDir: string | null;
  readonly storageWritable?: boolean;
  /** Toolchains, caches and the like, mounted in this order. */
  readonly binds: readonly SandboxBind[];
  /** Folders of the sandbox put before the system's PATH. */
  readonly path?: readonly string[];
  /** Default /app, or / without one. */
  readonly cwd?: string;
  /** Sizes of the two memory file systems /tmp and /home/app (64 MiB each by default). They count against the memory limit. */
  readonly tmpBytes?: number;
  readonly homeBytes?: number;
  readonly network: SandboxNetwork;
  readonly limits: SandboxLimits | null;
  /** The command reads a control stream from descriptor 3: `control` of the run. */
  readonly controlled?: boolean;
}

/**
 * `write`: changes go to the folder itself. `private`: the sandbox may change what it sees, up to `layerBytes`; the folder stays as it is and
 * the changes go with the sandbox.
 */
export interface SandboxApp {
  readonly source: string;
  readonly access: "read" | "write" | "private";
}

export interface SandboxBind {
  readonly source: string;
  /** An absolute path; its parents are made. A target below another bind must exist there, below a writable one with no link on the way. */
  readonly target: string;
  readonly writable: boolean;
}

/** `none`: not even the host's loopback. `egress`: outgoing connections. `serve`: also reachable at the command's `address`. */
export type SandboxNetwork =
  | { readonly kind: "none" }
  | { readonly kind: "egress"; readonly reach?: readonly ForwardedSocket[] }
  | { readonly kind: "serve"; readonly port: number; readonly reach: readonly ForwardedSocket[] };

export interface SandboxLimits {
  readonly memoryBytes: number;
  readonly processes: number;
  readonly cpus: number;
}

/** A sandbox ready to be started, once, by `run`, `start` or `startDetached` of exec.ts. */
export interface SandboxCommand {
  readonly command: Command;
  readonly options: ExecOptions;
  /** Where the host reaches it; null unless it serves. */
  readonly address: { readonly host: string; readonly port: number } | null;
  /** Closes this process's copies of the descriptors. Call it once the process is started or has failed to. */
  close(): void;
}

export interface SandboxRunOptions extends Omit<RunOptions, keyof ExecOptions> {
  readonly keepNetwork?: boolean;
}

export interface SandboxResult extends ExecResult {
  readonly outOfMemory: boolean;
}

export interface SandboxUsage {
  readonly memoryBytes: number;
  readonly cpuSeconds: number;
  readonly processes: number;
}

export interface Sandbox {
  /** The host's user that a sandbox with this `uid` runs as: folders it shall write must belong to it. */
  hostUid(uid: number): number;
  /** The isolation that worked on this machine when the sandbox was made. */
  describe(): SandboxDescription;
  /** Makes the control group and network of one sandbox and the command that enters it. `remove` frees them. Faults are thrown. */
  command(spec: SandboxSpec): Promise<SandboxCommand>;
  /** Makes the network of a sandbox ahead of its run, which then does not wait for it. */
  prepare(id: string): Promise<void>;
  /**
   * Runs a sandbox to its end and removes it. Abort or time-out kills everything in it at once. With `keepNetwork` its network stays for
   * the next run under the same id, until `remove`.
   */
  run(spec: SandboxSpec, options?: SandboxRunOptions): Promise<SandboxResult>;
  /** CPU, memory and process counts; undefined where control groups cannot be written. */
  usage(id: string): SandboxUsage | undefined;
  /** How much of the disk its changes to a private /app take, and whether that is more than it may; `pid` is one of its processes. */
  changes(id: string, pid: number): Promise<{ readonly bytes: number; readonly isOver: boolean }>;
  /** Whether the OOM killer ended a process of the sandbox. */
  outOfMemory(id: string): boolean;
  /** Kills all processes that are in the sandbox now, except `sparedPid`. A process that is just being forked may be missed: repeat until none is left. */
  kill(id: string, sparedPid?: number): void;
  /** Frees the control group and the network of an ended sandbox, killing what is left. Idempotent. */
  remove(id: string): Promise<void>;
  /** Removes the sandboxes of a family (`run`, `build` …) that a crash left, except those in `keep`. Returns those that could not be removed. */
  sweep(family: string, keep: readonly string[]): Promise<readonly string[]>;
  /** Removes the rules, routes and groups that all sandboxes share. Call it when no sandbox runs. */
  dismantle(): Promise<void>;
}

export interface SandboxDescription {
  readonly network: NetworkMode;
  readonly isolation: readonly string[];
  readonly missing: readonly MissingSandboxPart[];
}

export interface MissingSandboxPart {
  readonly part: string;
  readonly effect: string;
  readonly remedy: string;
}

export type NetworkMode = "veth" | "pasta" | "shared";

/** Absolute paths of the programs a sandbox is made with; null for those the machine lacks. */
export interface SandboxParts {
  readonly bwrap: string | null;
  readonly setpriv: string | null;
  readonly nft: string | null;
  readonly ip: string | null;
  readonly pasta: string | null;
  readonly socat: string | null;
}

export interface SandboxOptions {
  readonly parts: SandboxParts;
  /** Where leases of addresses and ports are kept; made when it is missing. */
  readonly stateDir: string;
  /** The platform's own Node, seen at /opt/node/bin/node unless a bind covers /opt/node. */
  readonly nodeBin: string;
  readonly network?: "auto" | NetworkMode;
  /** How much a sandbox may write to its private /app. Default 1 GiB. */
  readonly layerBytes?: number;
  /** A certificate (PEM file) that applications trust besides the system's. */
  readonly caFile?: string;
  /** With the network `veth`: services that sandboxes reach although their address is closed to them, or this machine's. */
  readonly open?: readonly { readonly address: string; readonly port: number }[];
  /** With the network `veth`: ports of the edge, which sandboxes reach at this machine's addresses as every visitor does. */
  readonly edgePorts?: readonly number[];
  /** Folders below /usr that must not be seen; the data folder when it is there. */
  readonly hide?: readonly string[];
}
