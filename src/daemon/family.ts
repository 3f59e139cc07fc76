import type { Builder } from "../ports/builder.ts";
import type { Runtime } from "../ports/runtime.ts";
import { createContainerFamily } from "./container-family.ts";
import { joinBuilders } from "./join-builders.ts";
import { joinRuntimes } from "./join-runtimes.ts";
import { createProcessFamily } from "./process-family.ts";
import type { Foundation } from "./wire.ts";

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

/** The families that BERTH_RUNTIME names, as one. */
export async function createFamily(foundation: Foundation): Promise<Family> {
  const [first, ...others] = foundation.config.runtime.split(",");
  const member = async (name: string) => {
    const create = name === "docker" ? createContainerFamily : createProcessFamily;
    return { name, ...(await create(foundation)) };
  };
  const members: [Member & Family, ...(Member & Family)[]] = [await member(first as string)];
  for (const name of others) members.push(await member(name));
  return {
    builder: joinBuilders(members),
    runtime: joinRuntimes(members),
    async leave() {
      for (const each of members) await each.leave();
    },
  };
}
