import type { Builder } from "../ports/builder.ts";
import type { Runtime } from "../ports/runtime.ts";

/** A builder and the runtime that runs what it builds. */
export interface Family {
  readonly builder: Builder;
  readonly runtime: Runtime;
  /** Removes what both created on this machine. Call it only once no application runs. */
  readonly leave: () => Promise<void>;
}

/** A builder and a runtime, with the runtime's name. */
export interface Member extends Pick<Family, "builder" | "runtime"> {
  readonly name: string;
}
