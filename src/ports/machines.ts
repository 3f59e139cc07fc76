/** The machines that a runtime of many runs replicas on. */
export interface MachinePool {
  list(): Promise<readonly PooledMachine[]>;
  /** A shell script: run as root on another machine, it makes that machine one of these. It holds secrets. */
  joinScript(): Promise<string>;
  /** Whether new replicas may start there; those that run stay. False: there is no such machine. */
  admit(id: string, takesReplicas: boolean): Promise<boolean>;
  /** The projects with replicas there. */
  projectsOn(id: string): Promise<readonly string[]>;
  /** Forgets a machine. Idempotent. */
  remove(id: string): Promise<void>;
}

export interface PooledMachine {
  readonly id: string;
  readonly name: string;
  readonly address: string;
  readonly role: "manager" | "worker";
  readonly state: "ready" | "down" | "unknown" | "disconnected";
  readonly takes_replicas: boolean;
  /** Whether its network is closed to containers; a machine without that gets no replicas. */
  readonly guarded: boolean;
  readonly replicas: number;
  readonly cpus: number;
  readonly memory_bytes: number;
  readonly version: string;
}
