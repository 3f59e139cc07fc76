import type { Builder } from "../ports/builder.ts";
import type { Runtime } from "../ports/runtime.ts";

/** A builder and a runtime that belong together: what the one makes, the other runs. */
export interface Family {
  readonly builder: Builder;
  readonly runtime: Runtime;
  /** Takes back what both made on this machine. Once no application runs. */
  readonly leave: () => Promise<void>;
}

/** A family under the name of its runtime. */
export interface Member extends Pick<Family, "builder" | "runtime"> {
  readonly name: string;
}
