import { checkDueDomains } from "../../features/domains/domains.ts";
import type { Task } from "../driver.ts";
import type { Platform } from "../platform.ts";

/** Looks up users' hostnames whose turn it is: those whose owner is waiting often, those that stand rarely. */
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

// Ten at a time and a few seconds each at worst: a run ends within two minutes though every server is silent.
const mostAtOnce = 200;
