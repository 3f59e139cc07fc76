import { checkDueDomains } from "../../features/domains/domains.ts";
import type { Task, Platform } from "../platform.ts";

/** Looks up users' hostnames that are due: often while their owner is waiting, rarely once they work. */
export function domainsTask(platform: Platform): Task {
  return {
    name: "domains",
    periodMs: 5000,
    topics: ["domains"],
    async run() {
      const count = await checkDueDomains(platform, mostAtOnce);
      return {
        detail: count === 0 ? "nothing is due" : `looked up ${count}`,
        ...(count === mostAtOnce ? { againMs: 0 } : {}),
      };
    },
  };
}

// Ten at a time and a few seconds each at worst: a run ends within half a minute even if no DNS server responds.
const mostAtOnce = 50;
