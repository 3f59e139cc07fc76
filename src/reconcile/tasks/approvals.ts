import { expireApprovals } from "../../features/approvals/approvals.ts";
import { deleteEndedKeys } from "../../features/idempotency/idempotency.ts";
import type { Task } from "../driver.ts";
import type { World } from "../world.ts";

/** Ends approvals whose time is over, and forgets the answers that were kept for repeated requests. */
export function approvalsTask(world: World): Task {
  return {
    name: "approvals",
    periodMs: 15_000,
    topics: [],
    async run() {
      const now = world.clock.now();
      const expired = await expireApprovals(world.db, world.wakeups, now);
      const forgotten = await deleteEndedKeys(world.db, now);
      return { detail: `${expired} approvals expired, ${forgotten} kept answers forgotten` };
    },
  };
}
