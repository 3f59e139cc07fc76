import type { ForwardedSocket } from "../kit/server-address.ts";
import type { Command, ExecOptions, ExecResult, RunOptions } from "../kit/exec.ts";

/** What runs in a sandbox and what it may see. The sandbox gets nothing that is not named here. */
export interface SandboxSpec {
  /** Names the sandbox's control group and network: unique, `[a-z0-9_-]`; the part before the first `-` is its family. */
  readonly id: string;
  /** The user it runs as if Berth is root (`uidBase + project_number`); otherwise it runs as Berth's own user. */
  readonly uid: number;
  readonly argv: readonly string[];
  /** The environment, except for PATH, HOME, LANG and CA variables, which are added when missing. May hold secrets. */
  readonly env: Readonly<Record<string, string>>;
  /** Mounted at /app. */
  readonly app: SandboxApp | null;
  /** Mounted at `storageTarget`, by default /storage, and writable by default; sets STORAGE_DIR. */
  readonly storageDir: string | null;
  readonly storageTarget?: string;
  readonly storageWritable?: boolean;
  /** Toolchains, caches and the like, mounted in this order. */
  readonly binds: readonly SandboxBind[];
  /** Folders in the sandbox, placed before the system's PATH. */
  readonly path?: readonly string[];
  /** Default: /app, or / if `app` is null. */
  readonly cwd?: string;
  /** Sizes of the tmpfs mounts /tmp and /home/app (64 MiB each by default). They count against the memory limit. */
  readonly tmpBytes?: number;
  readonly homeBytes?: number;
  readonly network: SandboxNetwork;
  readonly limits: SandboxLimits | null;
  /** Whether the command reads a control stream from descriptor 3: the run's `control`. */
  readonly controlled?: boolean;
}

/** `write`: changes go to the folder. `private`: up to `layerBytes` of changes are the sandbox's own, and go with it. */
export interface SandboxApp {
  readonly source: string;
  readonly access: "read" | "write" | "private";
}

export interface SandboxBind {
  readonly source: string;
  /** An absolute path, whose parents are created; below another bind it must exist, and below a writable one without links. */
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
  /** The address at which the host reaches it; null unless it serves. */
  readonly address: { readonly host: string; readonly port: number } | null;
  /** Closes this process's copies of the descriptors. Call it once the process has started or failed to. */
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
  /** Returns the host user that a sandbox with this `uid` runs as; folders it writes must belong to that user. */
  hostUid(uid: number): number;
  /** Describes the isolation that worked on this machine when the sandbox was created. */
  describe(): SandboxDescription;
  /** Creates the control group and network of one sandbox, and the command that enters it. `remove` frees them. Throws on failure. */
  command(spec: SandboxSpec): Promise<SandboxCommand>;
  /** Creates a sandbox's network ahead of its run, so that the run does not wait for it. */
  prepare(id: string): Promise<void>;
  /** Runs a sandbox until its command exits, then removes it. Abort or time-out kills it. `keepNetwork` keeps its network for the next run. */
  run(spec: SandboxSpec, options?: SandboxRunOptions): Promise<SandboxResult>;
  /** Returns CPU, memory and process counts; undefined if control groups can't be written. */
  usage(id: string): SandboxUsage | undefined;
  /** Returns how much disk space its changes to a private /app use, and whether that exceeds the limit; `pid` is one of its processes. */
  changes(id: string, pid: number): Promise<{ readonly bytes: number; readonly isOver: boolean }>;
  outOfMemory(id: string): boolean;
  /** Kills all current processes of the sandbox, except `sparedPid`. May miss one that is being forked: repeat until none is left. */
  kill(id: string, sparedPid?: number): void;
  /** Kills what is left of an ended sandbox and frees its control group and network. Idempotent. */
  remove(id: string): Promise<void>;
  /** Removes the sandboxes of a family (`run`, `build` …) that a crash left, except `keep`. Returns those that could not be removed. */
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

/** Absolute paths of the programs that sandboxes need; null for those the machine lacks. */
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
  /** Folder that stores the leases of addresses and ports; created if missing. */
  readonly stateDir: string;
  /** Berth's own Node, visible at /opt/node/bin/node unless a bind covers /opt/node. */
  readonly nodeBin: string;
  readonly network?: "auto" | NetworkMode;
  /** How much a sandbox may write to its private /app. Default 1 GiB. */
  readonly layerBytes?: number;
  /** A certificate (PEM file) that applications trust in addition to the system's. */
  readonly caFile?: string;
  /** The certificate (PEM file) of the authority that signed the certificate of the projects' database server. */
  readonly databaseCaFile?: string;
  /** Private networks that sandboxes may reach; the others are closed unless the network is `shared`. */
  readonly tenantNetworks?: readonly string[];
  /** With the network `veth` or `pasta`: services that sandboxes may reach although their address is blocked or belongs to this machine. */
  readonly open?: readonly { readonly address: string; readonly port: number }[];
  /** With the network `veth`: ports of the edge, which sandboxes may reach at this machine's addresses like any visitor. */
  readonly edgePorts?: readonly number[];
  /** Folders below /usr to hide, such as the data folder if it lies there. */
  readonly hide?: readonly string[];
}
