import { createContainerFamily } from "./container-family.ts";
import type { Family, Member } from "./family.ts";
import type { Foundation } from "./foundation.ts";
import { joinBuilders } from "./join-builders.ts";
import { joinRuntimes } from "./join-runtimes.ts";
import { createProcessFamily } from "./process-family.ts";

/**
 * Creates the families that BERTH_RUNTIME names and joins them into one. Docker and Swarm are one family, because they use the same engine:
 * the swarm's runtime also runs what is built for Docker, on this machine.
 */
export async function createFamily(foundation: Foundation): Promise<Family> {
  const { runtimes } = foundation.config;
  const engine = runtimes.includes("swarm") ? "swarm" : "docker";
  const created = new Map<"process" | typeof engine, Family>();
  const members: Member[] = [];
  for (const name of runtimes) {
    const kind = name === "process" ? name : engine;
    const family =
      created.get(kind) ??
      (await (kind === "process" ? createProcessFamily(foundation) : createContainerFamily(foundation, kind)));
    created.set(kind, family);
    members.push({ name, builder: family.builder, runtime: family.runtime });
  }
  const [first, ...others] = members as [Member, ...Member[]];
  return {
    builder: joinBuilders([first, ...others]),
    runtime: joinRuntimes([first, ...others]),
    async leave() {
      for (const family of created.values()) await family.leave();
    },
  };
}
