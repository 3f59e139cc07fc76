import { createContainerFamily } from "./container-family.ts";
import type { Family, Member } from "./family.ts";
import type { Foundation } from "./foundation.ts";
import { joinBuilders } from "./join-builders.ts";
import { joinRuntimes } from "./join-runtimes.ts";
import { createProcessFamily } from "./process-family.ts";

/** Creates the families that BERTH_RUNTIME names and joins them into one. */
export async function createFamily(foundation: Foundation): Promise<Family> {
  const [first, ...others] = foundation.config.runtime.split(",");
  const member = async (name: string) => {
    const isProcess = name !== "docker" && name !== "swarm";
    return { name, ...(await (isProcess ? createProcessFamily(foundation) : createContainerFamily(foundation, name))) };
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
