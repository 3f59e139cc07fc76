import type { Result } from "../contract/routes.ts";

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

export type PooledMachine = Result<"platform.machines">["machines"][number];
