import { expireApprovals, rehearsePromotions } from "../../features/approvals/approvals.ts";
import { deleteEndedKeys, limitKeptAnswers } from "../../features/idempotency/idempotency.ts";
import { provenTime } from "../../store/proven-time.ts";
import type { Task, Platform } from "../platform.ts";

/** Expires overdue approvals, lets promotions that wait for one be rehearsed, and deletes the responses stored for repeated requests. */
export function approvalsTask(platform: Platform): Task {
  return {
    name: "approvals",
    periodMs: 15_000,
    topics: ["approvals"],
    async run() {
      const now = await provenTime(platform);
      const expired = await expireApprovals(platform.db, platform.wakeups, now);
      const rehearsed = await rehearsePromotions(platform.db, platform.wakeups, now);
      const forgotten = await deleteEndedKeys(platform.db, now);
      const dropped = await limitKeptAnswers(platform.db);
      return {
        detail: `${expired} approvals expired, ${rehearsed === 0 ? "" : `${rehearsed} rehearsals requested, `}${forgotten + dropped} stored responses deleted`,
      };
    },
  };
}
