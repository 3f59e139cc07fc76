import type { Builder } from "../ports/builder.ts";
import type { Runtime } from "../ports/runtime.ts";
import { createContainerFamily } from "./container-family.ts";
import { createProcessFamily } from "./process-family.ts";
import type { Foundation } from "./wire.ts";

/** A builder and a runtime that belong together: what the one makes, the other runs. */
export interface Family {
  readonly builder: Builder;
  readonly runtime: Runtime;
  /** Takes back what both made on this machine. Once no application runs. */
  readonly leave: () => Promise<void>;
}

/** The family that BERTH_RUNTIME names. */
export function createFamily(foundation: Foundation): Promise<Family> {
  return foundation.config.runtime === "docker" ? createContainerFamily(foundation) : createProcessFamily(foundation);
}
