import type { Runtime } from "../ports/runtime.ts";
import type { DockerParts } from "./start-instance.ts";

/** The runtime of this machine's engine, used alone or by a runtime that spans several machines. */
export interface DockerRuntime extends Runtime {
  /** For a runtime that spans several machines: the parts that use this machine's engine. */
  readonly parts: DockerParts;
  /** Stops watching; containers keep running. */
  close(): void;
  /** Waits for starts in progress, then removes all containers, folders, networks, rules and routes. Later starts are rejected. */
  dismantle(): Promise<void>;
}
