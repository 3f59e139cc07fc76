import type { Runtime } from "../ports/runtime.ts";
import type { DockerParts } from "./start-instance.ts";

/** The runtime of the engine of this machine, alone or as a part of one of several machines. */
export interface DockerRuntime extends Runtime {
  /** What a runtime of several machines does with the engine of this one, beside its containers. */
  readonly parts: DockerParts;
  /** Stops watching; the containers go on. */
  close(): void;
  /** Waits for starts under way and takes back all containers, folders, networks, rules and routes. Nothing starts afterwards. */
  dismantle(): Promise<void>;
}
