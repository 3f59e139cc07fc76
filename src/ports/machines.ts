export interface MachinePool {
  list(): Promise<readonly PooledMachine[]>;
  /** Returns a shell script that, run as root on another machine, adds that machine to the pool. The script holds secrets. */
  joinScript(): Promise<string>;
  /** Allows or forbids new replicas on a machine; running ones stay. Returns false when there is no such machine. */
  admit(id: string, takesReplicas: boolean): Promise<boolean>;
  projectsOn(id: string): Promise<readonly string[]>;
  /** Removes a machine from the pool. Idempotent. */
  remove(id: string): Promise<void>;
}

export interface PooledMachine {
  readonly id: string;
  readonly name: string;
  readonly address: string;
  readonly role: "manager" | "worker";
  readonly state: "ready" | "down" | "unknown" | "disconnected";
  readonly takes_replicas: boolean;
  /** Whether its firewall keeps containers away from the operator's networks. A machine without it gets no replicas. */
  readonly guarded: boolean;
  readonly replicas: number;
  readonly cpus: number;
  readonly memory_bytes: number;
  readonly version: string;
}
