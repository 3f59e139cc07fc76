import type { Runtime } from "../ports/runtime.ts";
import type { DockerParts } from "./start-instance.ts";

/** The runtime of the engine of this machine, alone or as a part of one of several machines. */
export interface DockerRuntime extends Runtime {
  /** What a runtime of several machines does with the engine of this one, beside its containers. */
  readonly parts: DockerParts;
  /** Stops watching; the containers go on. */
  close(): void;
  /** Takes back networks, rules and routes. Once no container is left. */
  dismantle(): Promise<void>;
}
